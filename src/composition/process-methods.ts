import type { Clock } from '../domain/ports/clock.ts';
import type { MetricsText } from '../telemetry/metrics/metric-sums.ts';
import type { KnownUpstream } from '../operations/list-upstreams.ts';
import type { Listeners } from './listeners/listeners.ts';
import type { ProcessServices } from './process-services.ts';
import { writeOwnViews } from './worker-views.ts';

/** What the process of a gateway does with it, and the primary process of several workers with each. */
export interface ProcessMethods {
  /** The metrics of this process, to be added to those of other workers. */
  figures(): Promise<MetricsText>;
  /** What this process alone knows of the status, as JSON. */
  ownStatus(): Promise<string>;
  /** What this process alone knows of upstreams and shadow routes, as JSON. */
  ownViews(): Promise<string>;
  /** The reason why this process can't take requests now; `null` when it can. */
  whyNotReady(): Promise<string | null>;
  /** Leaves new connections to the other workers, and serves the open ones until they are closed, for a few seconds. */
  retire(): Promise<void>;
  /**
   * Is not ready from now on, and still takes requests for `server.shutdownDelay`, so that balancers have the time to notice;
   * for no time while the listeners are not open.
   */
  leave(): Leaving;
}

/** A process that is about to close. */
interface Leaving {
  /** How long it takes requests, in milliseconds. */
  readonly delayMs: number;
  /** Resolves after that time. */
  readonly over: Promise<void>;
}

/** What is read of the config in force. */
interface Current extends Pick<ProcessMethods, 'whyNotReady'> {
  readonly config: { readonly server: { readonly shutdownDelay: number } };
  readonly administration: { readonly upstreams: { own(): readonly KnownUpstream[] } };
}

export function processMethods(
  {
    observability,
    inFlight,
    clock,
    status,
    shadowBook,
  }: Pick<ProcessServices, 'observability' | 'inFlight' | 'clock' | 'status' | 'shadowBook'>,
  listeners: Listeners,
  current: () => Current,
): ProcessMethods {
  return {
    figures: () => observability.metrics.figures(),
    ownStatus: () => status.readOwn(),
    ownViews: async () => writeOwnViews(current().administration.upstreams.own(), shadowBook.views()),
    whyNotReady: () => current().whyNotReady(),
    retire: () => listeners.retire(),
    leave() {
      inFlight.leave();
      const delayMs = listeners.isOpen ? current().config.server.shutdownDelay : 0;
      if (delayMs > 0) listeners.leave();
      return { delayMs, over: delayMs === 0 ? Promise.resolve() : wait(delayMs, clock) };
    },
  };
}

function wait(durationMs: number, clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.schedule(durationMs, resolve));
}

import { limitersOfConfig } from '../coordination/upstream-limiter/limiters-of-config.ts';
import { MemoryUpstreamLimiters } from '../coordination/upstream-limiter/memory-upstream-limiters.ts';
import { circuitOpenMs } from '../domain/upstreams/circuit.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { UpstreamLimiters } from '../domain/ports/upstream-limiters.ts';
import { HedgeBudgets } from '../domain/routing/hedging.ts';
import { createUpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import type { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import type { Log } from '../telemetry/log/logger.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { ActiveConfig } from './active-config.ts';
import { composeQuotas } from './limiter-services.ts';
import type { StorageServices } from './storage/storage-services.ts';
import { runEvents } from './webhook-services.ts';
import type { EventServices } from './webhook-services.ts';

/** The circuits of all upstreams and their models: one that opens is logged with its cause. */
function createLoggedHealth(
  clock: Clock,
  { notice }: Pick<Log, 'notice'>,
  onChange: (upstream: string) => void,
): UpstreamHealth {
  return createUpstreamHealth(clock, ({ upstream, model, isOpen, onlyKey, cause }) => {
    onChange(upstream);
    const named = {
      upstream,
      ...(model === null ? {} : { model }),
      ...(onlyKey === null ? {} : { onlyKey }),
    };
    if (isOpen) notice('upstream circuit opened', { ...named, cause, trialAfterMs: circuitOpenMs });
    else notice('upstream circuit closed', named);
  });
}

/** What a process keeps of its upstreams, and the events. */
interface WatchedUpstreams {
  readonly health: UpstreamHealth;
  /** The second requests that each model may still send. */
  readonly hedges: HedgeBudgets;
  readonly upstreamLimiters: MemoryUpstreamLimiters;
  /** The limiters for the requests of one more config, the latest from now on. */
  readonly limitersOfNext: () => UpstreamLimiters;
  readonly events: EventServices;
  /** Another config is in force. */
  follow(next: ActiveConfig): void;
  /** Forgets what is known of an upstream, because the latest config made another one of it, or removed it. */
  forget(upstream: string): void;
  /** Resolves when the events are stopped, and the quotas of this process are given back to the others. */
  stop(): Promise<void>;
}

/**
 * The circuits of all upstreams, the limiters of those with limits, which are none while a circuit keeps a pause, and the events
 * that follow from circuits and from all else.
 */
export function watchHealth(
  storage: StorageServices,
  active: () => ActiveConfig,
  reports: { readonly clock: Clock; readonly log: Log; readonly metrics: Metrics },
): WatchedUpstreams {
  const { clock, log } = reports;
  const health = createLoggedHealth(clock, log, (upstream) => events.circuitChanged(upstream));
  const events = runEvents(storage, { ...reports, active, health });
  const quotas = composeQuotas(storage, clock, log);
  const upstreamLimiters = new MemoryUpstreamLimiters(clock, active().upstreamLimiters, {
    pausedMs: (target) => health.coolingMs(target),
    quotas,
  });
  quotas?.follow(upstreamLimiters);
  let configs = 0;
  return {
    health,
    hedges: new HedgeBudgets(),
    upstreamLimiters,
    limitersOfNext: () => limitersOfConfig(upstreamLimiters, ++configs),
    events,
    follow(next) {
      upstreamLimiters.configure(next.upstreamLimiters);
      events.attach(next);
    },
    forget(upstream) {
      health.forget(upstream);
      upstreamLimiters.forget(upstream, configs);
    },
    async stop() {
      upstreamLimiters.close();
      await Promise.all([events.stop(), quotas?.close()]);
    },
  };
}

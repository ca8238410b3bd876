import type { ConnectionRefusal } from '../domain/connection-refusal.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Log } from './logger.ts';
import type { Metrics } from './metrics.ts';

/** How long refused connections are summed up before their counts are logged, in milliseconds. */
const logEveryMs = 10_000;

/** Counts connections that were refused or closed. */
export interface ConnectionReport {
  /** Counts one connection. */
  readonly refused: (reason: ConnectionRefusal) => void;
  /** Logs the counts that have not been logged yet. */
  close(): void;
}

/** Counts each connection in the metrics and logs sums: an attack must not write a line per connection. */
export function createConnectionReport(
  metrics: Pick<Metrics, 'connectionRefused'>,
  log: Pick<Log, 'connectionsRefused'>,
  clock: Clock,
): ConnectionReport {
  const counts = new Map<ConnectionRefusal, number>();
  let cancel: (() => void) | null = null;
  const flush = (): void => {
    cancel?.();
    cancel = null;
    if (counts.size > 0) log.connectionsRefused(Object.fromEntries(counts));
    counts.clear();
  };
  return {
    refused(reason) {
      metrics.connectionRefused(reason);
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      cancel ??= clock.schedule(logEveryMs, flush);
    },
    close: flush,
  };
}

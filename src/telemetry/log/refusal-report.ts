import type { Clock } from '../../domain/ports/clock.ts';

/** How long refusals are summed up before their counts are logged, in milliseconds. */
const logEveryMs = 10_000;

/** Counts refusals by a closed list of reasons. */
export interface RefusalReport<Reason extends string> {
  /** Counts one refusal. */
  readonly refused: (reason: Reason) => void;
  /** Logs the counts that have not been logged yet. */
  close(): void;
}

/** Counts each refusal in the metrics and logs sums: an attack must not write a line per connection or request. */
export function createRefusalReport<Reason extends string>(
  count: (reason: Reason) => void,
  log: (counts: Readonly<Record<string, number>>) => void,
  clock: Clock,
): RefusalReport<Reason> {
  const counts = new Map<Reason, number>();
  let cancel: (() => void) | null = null;
  const flush = (): void => {
    cancel?.();
    cancel = null;
    if (counts.size > 0) log(Object.fromEntries(counts));
    counts.clear();
  };
  return {
    refused(reason) {
      count(reason);
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      cancel ??= clock.schedule(logEveryMs, flush);
    },
    close: flush,
  };
}

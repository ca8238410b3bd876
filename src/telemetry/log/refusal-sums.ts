import { codeOf } from '../../domain/exchange-summary.ts';
import type { ExchangeSummary } from '../../domain/exchange-summary.ts';
import type { Clock } from '../../domain/ports/clock.ts';

/** How long refusals are summed up before their counts are logged, in milliseconds. */
const logEveryMs = 10_000;

/** How many refusals there were, by their reasons. */
export type Counts = Readonly<Record<string, number>>;

/** Counts refusals, and logs sums: an attack must not write a line per connection or request. */
function sumUp(log: (counts: Counts) => void, clock: Clock) {
  const counts = new Map<string, number>();
  let cancel: (() => void) | null = null;
  const flush = (): void => {
    cancel?.();
    cancel = null;
    if (counts.size > 0) log(Object.fromEntries(counts));
    counts.clear();
  };
  return {
    add(reason: string): void {
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      cancel ??= clock.schedule(logEveryMs, flush);
    },
    flush,
  };
}

/** Counts each refusal, by a closed list of reasons, in the metrics, and logs sums. */
export function createRefusalReport<Reason extends string>(
  count: (reason: Reason) => void,
  log: (counts: Counts) => void,
  clock: Clock,
) {
  const sums = sumUp(log, clock);
  return {
    /** Counts one refusal. */
    refused: (reason: Reason): void => {
      count(reason);
      sums.add(reason);
    },
    /** Logs the counts that have not been logged yet. */
    close: sums.flush,
  };
}

/**
 * Sums up requests that ended before a key was authenticated, by error code, or by outcome if there was none. Anyone can
 * send them for free, so a log line for each would let anyone fill the disk.
 */
export function sumKeylessRefusals(
  clock: Clock,
  write: (sum: { readonly count: number; readonly codes: Counts }) => void,
) {
  const sums = sumUp((codes) => {
    const count = Object.values(codes).reduce((sum, times) => sum + times, 0);
    write({ count, codes });
  }, clock);
  return {
    /** Counts a request without a valid key; false for any other request, which gets a log line of its own. */
    countIfKeyless(summary: ExchangeSummary): boolean {
      if (summary.keyId !== null) return false;
      sums.add(codeOf(summary) ?? summary.outcome);
      return true;
    },
    /** Writes the counts now, if there are any. */
    flush: sums.flush,
  };
}

import type { ExchangeSummary } from '../../domain/exchange-summary.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { codeOf } from '../../domain/exchange-summary.ts';

/** How long requests without a valid key are summed up before their counts are logged, in milliseconds. */
const intervalMs = 10_000;

/** Requests without a valid key: their number, and that of each error code, or outcome if there was none. */
interface KeylessSum {
  readonly count: number;
  readonly codes: Readonly<Record<string, number>>;
}

/**
 * Sums up requests that ended before a key was authenticated. Anyone can send them for free, so a log line for each would
 * let anyone fill the disk.
 */
export function sumKeylessRefusals(
  clock: Clock,
  write: (sum: KeylessSum) => void,
): {
  /** Counts a request without a valid key; false for any other request, which gets a log line of its own. */
  countIfKeyless(summary: ExchangeSummary): boolean;
  /** Writes the counts now, if there are any. */
  flush(): void;
} {
  let codes: Record<string, number> = {};
  let count = 0;
  let cancel: (() => void) | null = null;
  const flush = (): void => {
    cancel?.();
    if (count > 0) write({ count, codes });
    codes = {};
    count = 0;
  };
  return {
    countIfKeyless(summary) {
      if (summary.keyId !== null) return false;
      if (count === 0) cancel = clock.schedule(intervalMs, flush);
      const code = codeOf(summary) ?? summary.outcome;
      codes[code] = (codes[code] ?? 0) + 1;
      count++;
      return true;
    },
    flush,
  };
}

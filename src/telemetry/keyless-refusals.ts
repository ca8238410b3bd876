import type { ExchangeSummary } from '../domain/exchange-summary.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { codeOf } from './error-code.ts';

/** How long requests without a valid key are counted before the sum is a line of the log, in milliseconds. */
const intervalMs = 10_000;

/** How many requests without a valid key there were: in all, and by the code of their refusal or else their outcome. */
interface KeylessSum {
  readonly count: number;
  readonly codes: Readonly<Record<string, number>>;
}

/**
 * Sums up requests that ended before a key was known. They cost a stranger nothing, and with a line for each of
 * them anyone could fill the disk of the log.
 */
export function sumKeylessRefusals(
  clock: Clock,
  write: (sum: KeylessSum) => void,
): {
  /** Counts a request without a valid key; false for every other request, which has a line of its own. */
  takes(summary: ExchangeSummary): boolean;
  /** Writes the sum now, if there is one. */
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
    takes(summary) {
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

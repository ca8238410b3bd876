import type { EndOutcome } from '../money/consumption.ts';

/** What ended in the last seconds, at most 60. */
interface Endings {
  /** How many seconds these figures are about; fewer than 60 only after the start. */
  readonly seconds: number;
  readonly requests: number;
  /** Of the requests that ended: those in progress count none yet. */
  readonly outputTokens: number;
  /** How many requests ended so; an outcome without any is absent. */
  readonly endings: Readonly<Partial<Record<EndOutcome, number>>>;
}

/** What ended on one process, in a form that can be added up. */
export interface EndingCounts extends Endings {
  /** How many streams had their first text within each bound of times, by the number of the bound. */
  readonly firstTexts: readonly (readonly [bound: number, times: number])[];
}

/** What ended on all workers of a gateway. */
export interface RecentEndings extends Endings {
  /** How long streams took to their first text, in milliseconds, right to 3 %; `null` without a stream. */
  readonly firstTextMs: { readonly p50: number | null; readonly p99: number | null };
}

/** What the books show at the last look; `null` where another node looks, and before the first look. */
export interface LedgerState {
  readonly openHolds: number | null;
  /** In nano-USD; also `null` while no audit has come to its end. */
  readonly imbalanceNanos: number | null;
  /** The age of the oldest settlement that waits for the database, in milliseconds; 0 when none waits. */
  readonly settlementLagMs: number;
  /** The newest root over all ledgers. */
  readonly root: { readonly number: number; readonly madeAtMs: number } | null;
}

/** What was counted of an upstream since the start of this process; what was never counted is absent. */
export interface UpstreamCounts {
  /** Attempts, by result. */
  readonly attempts: Readonly<Record<string, number>>;
  /** Answers that violated the upstream's protocol, by kind. */
  readonly violations: Readonly<Record<string, number>>;
}

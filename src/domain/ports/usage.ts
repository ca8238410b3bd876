import type { Outcome } from '../money/consumption.ts';
import type { Pause } from '../pause.ts';

/** What usage can be grouped by: at most one of the first three, and any of the others. */
export const usagePeriods = ['hour', 'day', 'month'] as const;
export const usageDimensions = ['key', 'group', 'model', 'upstream', 'outcome', 'tag'] as const;

export type UsagePeriod = (typeof usagePeriods)[number];
export type UsageDimension = (typeof usageDimensions)[number];
export type UsageGroup = UsagePeriod | UsageDimension;

/** How many rows a page of usage has at most. */
export const maxUsageRows = 1_000;

/** What usage is asked for. Times are milliseconds since 1970; hours, days and months are those of UTC. */
export interface UsageQuery {
  /** The groups, none of them twice; without any there is one row, or none without requests. */
  readonly by: readonly UsageGroup[];
  /** The beginning of an hour. A request counts by the time at which its record was begun. */
  readonly fromMs: number;
  /** The beginning of an hour, which is not included. */
  readonly toMs: number;
  readonly where: UsageFilter;
  /** From 1 to `maxUsageRows`. */
  readonly limit: number;
  /** The `next` of the page before, of the same query; `null` for the first page. */
  readonly after: string | null;
}

export interface UsageFilter {
  readonly keyId?: string | undefined;
  /** The group in which the key was when the request began; `null` for the requests of keys without one. */
  readonly group?: string | null | undefined;
  readonly model?: string | undefined;
  readonly upstream?: string | undefined;
  readonly outcome?: Outcome | undefined;
  /** `null` for the requests without a tag. */
  readonly tag?: string | null | undefined;
}

/**
 * What the ended requests of one group amount to. Of the groups it has those that were asked for.
 */
export interface UsageRow {
  /** The beginning of the hour, day or month. */
  readonly startMs?: number;
  readonly keyId?: string;
  /** `null` for the requests of keys without a group. */
  readonly group?: string | null;
  readonly model?: string;
  readonly upstream?: string;
  readonly outcome?: Outcome | '';
  readonly tag?: string | null;
  readonly requests: number;
  /** Tokens as records have them: the cached ones and cache writes are among the input, the reasoning among the output. */
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  /** What was charged, in nano-USD. A sum over many keys may be larger than what a number holds exactly. */
  readonly chargeNanos: bigint;
}

/**
 * A page of usage, ordered by period, key, group, model, upstream, outcome and tag, whatever the order of `by`; texts by their
 * bytes. Only `next` says whether there is more: a page may have fewer rows than asked for, or none, and not be the last.
 */
interface UsagePage {
  readonly rows: readonly UsageRow[];
  /** The cursor of the following page; `null` at the end. */
  readonly next: string | null;
}

/** The sums of all requests that have ended, whether or not their records are still there. */
export interface Usage {
  /**
   * A page, each row exact as of one moment of the read. Resolves with `null` when `after` is no cursor of this query;
   * rejects with a `StorageError` when the database fails, and with a `RangeError` for a sum that is not exact.
   */
  usage(query: UsageQuery): Promise<UsagePage | null>;
}

/** Sums of whole days and months, by which usage of a long time is read quickly. They are never needed to read it. */
export interface UsageRollups {
  /**
   * Rolls up what is over at a time (milliseconds since 1970) and is not rolled up, or has changed since; in steps of a few
   * milliseconds of the database, between which it waits. Resolves with how many days and months there were; rejects when
   * `pause` does. Whatever ends it, the next call goes on.
   */
  rollUp(nowMs: number, pause: Pause): Promise<number>;
}

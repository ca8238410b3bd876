/** How many requests of a key were refused because of one limit on one day, since the last ones were added. */
export interface RefusedRequests {
  /** The beginning of the day, in UTC, in milliseconds since 1970. */
  readonly dayMs: number;
  readonly keyId: string;
  readonly limit: string;
  readonly requests: number;
}

/** How many requests of one key were refused, by limit; limits that refused none are absent. */
export type RefusedByLimit = Readonly<Record<string, number>>;

/** How many requests a limit has refused, of how many keys. */
interface LimitRefusals {
  readonly limit: string;
  readonly requests: number;
  readonly keys: number;
}

/** How many requests of one key a limit has refused. */
type KeyRefusals = Pick<RefusedRequests, 'keyId' | 'limit' | 'requests'>;

/** How many requests limits have refused: sums by day, key and limit, which all nodes add to. */
export interface Refusals {
  /** Adds to the sums, in one unit, and removes those of days that are long over. */
  add(refused: readonly RefusedRequests[]): Promise<void>;
  /** The sums of some keys on one day, by their ids; keys without a refusal are absent. */
  ofDay(keyIds: readonly string[], dayMs: number): Promise<ReadonlyMap<string, RefusedByLimit>>;
  /**
   * The sums of the days that begin from a time on and before another one, of one key or of all, most first: by limit, and the
   * largest ones by limit and key, at most `most`. Those of 32 days are kept.
   */
  ofDays(
    days: { readonly fromMs: number; readonly toMs: number; readonly keyId?: string | undefined },
    most: number,
  ): Promise<{ readonly byLimit: readonly LimitRefusals[]; readonly byKey: readonly KeyRefusals[] }>;
}

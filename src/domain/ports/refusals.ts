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

/** How many requests limits have refused: sums by day, key and limit, which all nodes add to. */
export interface Refusals {
  /** Adds to the sums, in one unit, and removes those of days that are long over. */
  add(refused: readonly RefusedRequests[]): Promise<void>;
  /** The sums of some keys on one day, by their ids; keys without a refusal are absent. */
  ofDay(keyIds: readonly string[], dayMs: number): Promise<ReadonlyMap<string, RefusedByLimit>>;
}

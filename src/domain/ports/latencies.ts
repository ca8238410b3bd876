import type { BoundCounts } from '../../shared/time-bounds.ts';

/** What latencies are asked for: the requests that began in a time (milliseconds since 1970, `toMs` is not included). */
export interface LatencyQuery {
  readonly fromMs: number;
  readonly toMs: number;
  readonly upstream?: string | undefined;
  readonly model?: string | undefined;
}

/** How long the calls of one upstream for one model took. */
export interface LatencyCounts {
  readonly upstream: string;
  readonly model: string;
  /** The requests that the upstream answered or failed. */
  readonly requests: number;
  /** From the call to the first text, of streams that one call answered. */
  readonly firstTexts: BoundCounts;
  /** From the call to its end, of all requests that one call answered. */
  readonly durations: BoundCounts;
}

/** Latencies, as the records of ended requests have them. */
export interface Latencies {
  /** Counts the newest `most` records of a time; `isWhole` says whether there are no others. */
  countLatencies(
    query: LatencyQuery,
    most: number,
  ): Promise<{ readonly counts: readonly LatencyCounts[]; readonly isWhole: boolean }>;
}

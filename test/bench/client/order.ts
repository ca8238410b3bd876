/** Requests for the load generator to send. */
export interface LoadOrder {
  /** Each new connection goes to the next one of them. */
  readonly ports: readonly number[];
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Keys of which each request presents the next one; empty where the headers have what is needed. */
  readonly keys: readonly string[];
  readonly body: string;
  /** How many requests are sent in all, and how many are open at once, each on a connection of its own. */
  readonly requests: number;
  readonly atOnce: number;
  /** How many requests are begun in a second; null begins each as soon as a connection is free. */
  readonly startsPerSecond: number | null;
  /** The `data:` lines that each answer must have; null accepts any number, as whole answers have none. */
  readonly events: number | null;
  /** The texts of each answer that say when they were written, where all of these times are read; null reads only the first. */
  readonly stamps: number | null;
  /** Read little at a time, with this pause in milliseconds; null reads everything at once. */
  readonly readPauseMs: number | null;
  /** When the load is cut off, in milliseconds: what is open by then has failed, or has been read for long enough. */
  readonly deadlineMs: number;
}

/** How long something took in milliseconds, over all answers. */
export interface Spread {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** The result of a load. */
export interface LoadResult {
  readonly kind: 'result';
  /** Good answers: status 200, the expected events and a complete end. */
  readonly answers: number;
  /** What was wrong with the others, with their numbers. */
  readonly failures: Readonly<Record<string, number>>;
  /** How many requests were sent again, as a kept connection was closed between two answers. */
  readonly sentAgain: number;
  readonly events: number;
  readonly bytes: number;
  readonly elapsedMs: number;
  /** From sending a request to its first text, and to its end. */
  readonly firstText: Spread;
  readonly total: Spread;
  /**
   * From sending a request until it was at the upstream, and from the upstream's writing of the first text until that was
   * here; NaN where the upstream was not asked for its times.
   */
  readonly requestWay: Spread;
  readonly answerWay: Spread;
  /** From the upstream's writing of a text until it was here, over all texts; NaN where not all of them were asked for. */
  readonly eventWay: Spread;
}

/** Reports that as many answers have text and are still open as the order has at once. */
export interface AllOpen {
  readonly kind: 'all open';
  readonly elapsedMs: number;
}

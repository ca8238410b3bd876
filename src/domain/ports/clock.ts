/** The clock, passed in so that tests can set it. */
export interface Clock {
  /** Milliseconds since 1970: for display and records only. */
  now(): number;
  /** Milliseconds that never jump: for durations, deadlines and limits. */
  monotonicMs(): number;
  /** Calls back once after `delayMs`; the returned function cancels it. */
  schedule(delayMs: number, callback: () => void): () => void;
}

/** Fresh 32-digit hexadecimal ids. */
export type NextId = () => string;

import type { RequestTokens } from '../ports/upstream-limiters.ts';

/** A request in progress at an upstream. */
export interface CallInFlight {
  /** The order in which requests started there. */
  readonly seq: number;
  /** On the monotonic clock. */
  readonly startedMs: number;
  /** The most that is expected. */
  readonly tokens: RequestTokens;
  /** The tokens that limits of its upstream which are not configured were charged for it. */
  planned: RequestTokens;
  /** Whether the head of its answer is here. */
  isAnswered: boolean;
  /** Whether its input is counted as a report shows it, rather than as planned. */
  isInputSeen: boolean;
}

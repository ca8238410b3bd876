import type { RoomTokens } from '../ports/rooms.ts';

/** A request in progress at an upstream. */
export interface Stay {
  /** The order in which requests started there. */
  readonly seq: number;
  /** On the monotonic clock. */
  readonly startedMs: number;
  /** The most that is expected. */
  readonly tokens: RoomTokens;
  /** The tokens that limits of its upstream which are not configured were charged for it. */
  planned: RoomTokens;
  /** Whether the head of its answer is here. */
  isAnswered: boolean;
  /** Whether its input is counted as a report shows it, rather than as planned. */
  isInputSeen: boolean;
}

import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import type { AnswerWriter } from '../../protocol/answer-writer.ts';
import type { HeadFacts } from '../client-connection.ts';

/**
 * - `reading`: the request has not been read yet, so any answer is an HTTP error;
 * - `waiting`: the writer is chosen, and nothing has been sent;
 * - `open`: a part of a stream was sent, so the status can't change any more;
 * - `passing`: the upstream's own head was sent;
 * - `ended`: the last byte was handed to the connection.
 */
export type DeliveryState =
  | { readonly phase: 'reading' }
  | { readonly phase: 'waiting'; readonly writer: AnswerWriter }
  | { readonly phase: 'open'; readonly writer: AnswerWriter }
  | { readonly phase: 'passing'; readonly isWhole: boolean }
  | { readonly phase: 'ended' };

export const reading: DeliveryState = { phase: 'reading' };
export const ended: DeliveryState = { phase: 'ended' };

/** What a delivery uses beside its client. */
export interface DeliveryTools {
  readonly clock: Clock;
  /** Raised when the request must stop: a write then no longer waits for a client that does not read. */
  readonly signal: AbortSignal;
  /** What the head of an answer says of its key and its request, from the current stage. */
  readonly headFacts: () => HeadFacts;
  /** Called when the first part of a stream is sent. */
  readonly onOpened: () => void;
  readonly onFault: ReportFault;
}

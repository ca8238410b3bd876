import type { AnswerWriter } from '../protocol/answer-writer.ts';

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

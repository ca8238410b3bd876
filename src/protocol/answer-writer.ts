import type { Refusal } from '../shared/errors.ts';
import type { FinishedAnswer } from './text.ts';

/** What an answer is called and when it began: given to a writer, never made by it. */
export interface AnswerIdentity {
  /** 32 hexadecimal digits, from which every id of the answer is made. */
  readonly id: string;
  /** Seconds since 1970. */
  readonly createdAtSeconds: number;
  /** The model by the name that the client used. */
  readonly model: string;
}

/**
 * Writes one answer in a client's protocol. The calls follow the order law: `delta` any number of times, then
 * `finish` or `fail` once. Each returns what to send now, which may be nothing.
 */
export interface AnswerWriter {
  readonly contentType: string;
  /** Whether the text goes out as it comes; otherwise it goes out as a whole with `finish`. */
  readonly isStream: boolean;
  /** What may be sent between two parts to show that the answer still comes; empty where there is no such thing. */
  readonly keepAlive: string;
  delta(text: string): string;
  /** `finishedAtSeconds` counts from 1970. */
  finish(finish: FinishedAnswer, finishedAtSeconds: number): string;
  /** The failure frames of a stream that has begun. A whole answer has none: its failure is an HTTP error. */
  fail(refusal: Refusal): string;
  /** Whether a failed stream must be torn down, because its protocol has no failure event of its own. */
  readonly tearDownOnFailure: boolean;
}

export const eventStreamType = 'text/event-stream; charset=utf-8';
/** One line break: a second one makes some SDKs dispatch an empty event. */
export const keepAliveComment = ': keep-alive\n';
export const jsonType = 'application/json; charset=utf-8';

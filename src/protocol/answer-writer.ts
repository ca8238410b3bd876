import type { Refusal } from '../shared/errors.ts';
import type { FinishedAnswer } from './text.ts';

/** The id, time and model name of an answer: passed to its writer, which never makes them up. */
export interface AnswerIdentity {
  /** 32 hexadecimal digits, from which every id of the answer is made. */
  readonly id: string;
  /** Seconds since 1970. */
  readonly createdAtSeconds: number;
  /** The model name that the client used. */
  readonly model: string;
}

/**
 * Writes one answer in a client's protocol. The calls follow the order law: `delta` any number of times, then
 * `finish` or `fail` once. Each returns the text to send now, which may be empty.
 */
export interface AnswerWriter {
  readonly contentType: string;
  /** Whether text is sent as it arrives; otherwise `finish` returns the whole body. */
  readonly isStream: boolean;
  /** A comment that may be sent between two parts to keep the connection alive; empty for a whole answer. */
  readonly keepAlive: string;
  delta(text: string): string;
  /** `finishedAtSeconds` counts from 1970. */
  finish(finish: FinishedAnswer, finishedAtSeconds: number): string;
  /** The failure frames of a stream that has begun. A whole answer has none: its failure is an HTTP error. */
  fail(refusal: Refusal): string;
  /** Whether a failed stream must be torn down, because its protocol has no failure event. */
  readonly tearDownOnFailure: boolean;
}

export const eventStreamType = 'text/event-stream; charset=utf-8';
/** Ends with one line break: a second one makes some SDKs dispatch an empty event. */
export const keepAliveComment = ': keep-alive\n';
export const jsonType = 'application/json; charset=utf-8';

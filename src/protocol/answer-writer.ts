import { errorBody } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { formatUsd, usdNumber } from '../shared/money.ts';
import { KeptText } from './kept-text.ts';
import type { FinishedAnswer, ShownCharge } from './text.ts';

/** The id, time and model name of an answer: passed to its writer, which never makes them up. */
export interface AnswerIdentity {
  /** 32 hexadecimal digits, from which every id of the answer is made. */
  readonly id: string;
  /** Seconds since 1970. */
  readonly createdAtSeconds: number;
  /** The model name that the client used. */
  readonly model: string;
}

/** How the events of a stream are numbered, from 0, so that a client can go on behind one of them. */
export interface EventNumbers {
  /** What the id of an event begins with, before its number; `null` for events without ids. */
  readonly idPrefix: string | null;
  /** The last event that is left out, because the client has it; -1 for none. */
  readonly after: number;
}

/** Numbers the events of a stream: it is called with each in its order, and returns what to send of it. */
export function numberEvents(numbers: EventNumbers | null): (frame: string) => string {
  if (numbers === null) return (frame) => frame;
  const { idPrefix, after } = numbers;
  let next = 0;
  return (frame) => {
    const number = next++;
    if (number <= after) return '';
    return idPrefix === null ? frame : `id: ${idPrefix}${number}\n${frame}`;
  };
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
  /** `finishedAtSeconds` counts from 1970; `chargeNanos` is in nano-USD, `null` if the answer was not settled. */
  finish(finish: FinishedAnswer, finishedAtSeconds: number, chargeNanos: number | null): string;
  /** The failure frames of a stream that has begun. A whole answer has none: its failure is an HTTP error. */
  fail(refusal: Refusal, chargeNanos: number | null): string;
  /** Whether a failed stream must be torn down, because its protocol has no failure event. */
  readonly tearDownOnFailure: boolean;
}

/** A string, as strict clients refuse `null`; the same for all answers, so that it tells nothing of upstreams. */
export const systemFingerprint = 'fp_textgate';

export const eventStreamType = 'text/event-stream; charset=utf-8';
/** Ends with one line break: a second one makes some SDKs dispatch an empty event. */
export const keepAliveComment = ': keep-alive\n';

/** Neither. */
export const hiddenCharge: ShownCharge = { usageCost: false, chargeComment: false };

/**
 * Puts the comment with the charge of a stream before its last event, if it is shown, and there is one. One line break, as
 * above.
 */
export function afterCharge(
  last: string,
  { chargeComment: isShown }: ShownCharge,
  chargeNanos: number | null,
): string {
  const hasComment = last !== '' && isShown && chargeNanos !== null;
  return hasComment ? `: x-textgate-charge: ${formatUsd(chargeNanos)}\n${last}` : last;
}

/** The field of a usage object that shows its charge; none if it is not shown. */
export function usageCost(
  { usageCost: isShown }: ShownCharge,
  chargeNanos: number | null,
): { readonly cost?: number } {
  return isShown && chargeNanos !== null ? { cost: usdNumber(chargeNanos) } : {};
}

export const jsonType = 'application/json; charset=utf-8';

/** What the head of an answer says of its body. */
export type AnswerKind = Pick<AnswerWriter, 'contentType' | 'isStream'>;
export const wholeJson: AnswerKind = { contentType: jsonType, isStream: false };

/** Writes a whole answer: `build` makes its object of all of its text, and of what `finish` is given. */
export function createWholeAnswerWriter(
  build: (text: string, ...ended: Parameters<AnswerWriter['finish']>) => Record<string, unknown>,
): AnswerWriter {
  const text = new KeptText();
  return {
    contentType: jsonType,
    isStream: false,
    keepAlive: '',
    tearDownOnFailure: false,
    delta(more) {
      text.add(more);
      return '';
    },
    finish: (finish, finishedAtSeconds, chargeNanos) =>
      JSON.stringify(build(text.toString(), finish, finishedAtSeconds, chargeNanos)),
    fail: () => '',
  };
}

/** The OpenAI error envelope, as the body of an HTTP error. */
export function writeRefusal(refusal: Refusal): string {
  return JSON.stringify({ error: errorBody(refusal) });
}

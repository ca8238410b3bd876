import type { UpstreamError } from '../text.ts';
import type { ErrorWords } from './error-words.ts';
import type { Sanitise } from './words/sanitise.ts';

/** How much of a message's beginning is compared with the fixed sentences of providers, in UTF-16 code units. */
const maxOpeningChars = 256;

/**
 * How much of a long message's end is read beside its beginning, in UTF-16 code units: many end with what is wrong, behind
 * what they quote.
 */
const tailChars = 400;

/** The longest name of an error, in UTF-16 code units, and how many of an error's names are read. */
const maxCodeChars = 64;
const maxCodes = 16;

/** One word that may be the name of an error. */
const codeForm = /^[A-Za-z][\w.-]{2,63}$/;

/**
 * What an upstream says of an error, as far as it decides what kind of error it is: never more than a few hundred
 * characters, and nothing in which a quoted request could pass for the upstream's own words.
 */
export interface SaidWords {
  /** The names of the error: the upstream's own, so that they decide without regard to the request. */
  readonly codes: readonly string[];
  /** The beginning of the message as the upstream wrote it, for sentences that a request may have, too. */
  readonly opening: string;
  /** The message's beginning and end and the details, sanitised, so that no quotation of the request is left. */
  readonly shown: string;
  /** The message, if it is one word in the form of a name; otherwise `null`. */
  readonly name: string | null;
  /** Whether there is a message of which nothing may be shown. */
  readonly isHidden: boolean;
}

/** Reduces an error's words to those that may decide. */
export function readSaidWords(
  { codes, message, hint }: ErrorWords,
  upstreamError: UpstreamError | null,
  sanitise: Sanitise,
): SaidWords {
  const shownMessage = upstreamError?.message ?? null;
  const details = hint === '' ? null : sanitise(hint);
  const isLong = message !== null && message.length > tailChars;
  const tail = isLong ? sanitise(message.slice(-tailChars)) : null;
  return {
    codes: codes.filter(({ length }) => length <= maxCodeChars).slice(0, maxCodes),
    opening: (message ?? '').slice(0, maxOpeningChars).trimStart(),
    shown: [shownMessage, tail, details].filter((text) => text !== null).join('\n'),
    name: shownMessage !== null && codeForm.test(shownMessage) ? shownMessage : null,
    isHidden: message !== null && shownMessage === null,
  };
}

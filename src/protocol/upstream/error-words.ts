import { isPlainObject, parseJson } from '../../shared/parse-json.ts';
import type { UpstreamError } from '../text.ts';
import type { Sanitise } from './words/sanitise.ts';
import { markOfShape } from './words/secret-shapes.ts';

/** What an upstream says of an error, as it said it: nothing of it may be shown. */
export interface ErrorWords {
  /** The names that the upstream gives the error, the most exact one first. */
  readonly codes: readonly string[];
  /** The status that an error inside an answer has; `null` without one. */
  readonly status: number | null;
  readonly message: string | null;
  /** What the error's details say beside the message: it tells what kind of error this is, and is not shown. */
  readonly hint: string;
}

const noWords: ErrorWords = { codes: [], status: null, message: null, hint: '' };

/** How many of the faults that a body lists are read, and how far errors within errors are. */
const maxListed = 3;
const maxDepth = 4;

/** How many of the names of an error are considered for being shown: the sanitiser searches the request for each. */
const maxShownCodes = 8;

/** The fields that hold an error, its message, and its name, the best first. */
const holders = ['error', 'errors', 'detail', 'fault', 'message'];
const messageFields = [
  'message',
  'msg',
  'detail',
  'error_message',
  'errorMessage',
  'faultstring',
  'title',
  'reason',
];
const codeFields = ['code', 'type', 'status', 'error_type', 'errorType', '__type'];

/** Control characters but for white space. Within JSON they are escaped, and are removed before a message is shown. */
const controls = /(?!\s)\p{Cc}/u;

/**
 * Reads the body of an error status: JSON of any provider, a web page of which only the title counts, or plain text. Of one
 * that is not text, such as compressed data, nothing is read, and no message in which bytes that are no text were replaced.
 */
export function readErrorBodyWords(body: string): ErrorWords {
  if (controls.test(body)) return noWords;
  const words = readBodyWords(body);
  return words.message?.includes('\uFFFD') === true ? { ...words, message: null } : words;
}

function readBodyWords(body: string): ErrorWords {
  const text = body.trim();
  if (text === '') return noWords;
  if (/^[[{"]/.test(text)) {
    const parsed = parseJson(text);
    return parsed === undefined ? { ...noWords, message: cutMessageOf(text) } : readErrorWords(parsed);
  }
  if (!text.startsWith('<')) return { ...noWords, message: text };
  return { ...noWords, message: titleOf(text) };
}

/** How much of the message is read of a body whose end is missing, in UTF-16 code units: more than is ever shown. */
const maxCutMessageChars = 8_192;

/** A message in JSON, up to its end or that length. */
const cutMessage = new RegExp(
  String.raw`(?<!\\)"(?:message|msg|detail)"\s{0,16}:\s{0,16}"((?:[^"\\]|\\.){1,${maxCutMessageChars}})("?)`,
);

/**
 * The first message of a body in JSON whose end is missing, as of an error that repeats a long request. If that message
 * itself is cut off soon, its last word may be the beginning of a key, so nothing of it is read.
 */
function cutMessageOf(body: string): string | null {
  const [, said = '', end] = cutMessage.exec(body) ?? [];
  if (end !== '"' && said.length < maxCutMessageChars) return null;
  const parsed = parseJson(`"${said}"`);
  return typeof parsed === 'string' ? parsed : said;
}

/** Reads an error object, a list of them, or a text, in any of the forms in which providers send them. */
export function readErrorWords(error: unknown, depth = maxDepth): ErrorWords {
  if (typeof error === 'string') return { ...noWords, message: error };
  if (depth === 0) return noWords;
  if (Array.isArray(error)) return readList(error, depth);
  if (!isPlainObject(error)) return noWords;
  const inner = holders
    .map((name) => error[name])
    .filter((value) => isPlainObject(value) || Array.isArray(value))
    .map((value) => readErrorWords(value, depth - 1))
    .find(({ message, codes }) => message !== null || codes.length > 0);
  const relayed = readRelayed(error, depth);
  const own = codesOf(error);
  const found = relayed ?? inner;
  const said = found?.message ?? firstText(error, [...messageFields, 'error']);
  return {
    codes: [...(found?.codes ?? []), ...own.codes],
    status: found?.status ?? own.status,
    message: said === null ? null : placeOf(error) + said,
    hint: found?.hint || hintOf(error),
  };
}

/** Several faults of one request, as FastAPI lists them. */
function readList(errors: readonly unknown[], depth: number): ErrorWords {
  const read = errors.slice(0, maxListed).map((error) => readErrorWords(error, depth - 1));
  const messages = read.map(({ message }) => message).filter((message) => message !== null);
  return {
    codes: read.flatMap(({ codes }) => codes),
    status: read.find(({ status }) => status !== null)?.status ?? null,
    message: messages.length === 0 ? null : messages.join('; '),
    hint: read.map(({ hint }) => hint).join(' '),
  };
}

/** OpenRouter and others relay a provider's own error as text within theirs. */
function readRelayed(error: Readonly<Record<string, unknown>>, depth: number): ErrorWords | null {
  const { metadata } = error;
  const raw = isPlainObject(metadata) ? metadata['raw'] : null;
  if (typeof raw !== 'string') return null;
  const parsed = parseJson(raw);
  const words = parsed === undefined ? { ...noWords, message: raw } : readErrorWords(parsed, depth - 1);
  return words.message === null ? null : words;
}

function codesOf(error: Readonly<Record<string, unknown>>): Pick<ErrorWords, 'codes' | 'status'> {
  const { details, metadata } = error;
  const reasons = listedIn(details).map((detail) => detail['reason']);
  // OpenRouter names a refused text by quoting it: the field is the name, and its value is not read.
  const isFlagged = isPlainObject(metadata) && metadata['flagged_input'] !== undefined;
  const named = [
    ...(isFlagged ? ['flagged_input'] : []),
    ...reasons,
    ...codeFields.map((name) => error[name]),
  ];
  const status = [error['code'], error['status'], error['status_code']].map(Number).find(isErrorStatus);
  // `"object":"error"` and `"type":"error"` are envelopes, and a number only repeats the status.
  const codes = named.filter(
    (code) => typeof code === 'string' && code !== 'error' && Number.isNaN(Number(code)),
  );
  return { codes: codes as string[], status: status ?? null };
}

function hintOf({ details }: Readonly<Record<string, unknown>>): string {
  return listedIn(details)
    .map((detail) => firstText(detail, messageFields) ?? '')
    .join(' ');
}

function listedIn(details: unknown): readonly Readonly<Record<string, unknown>>[] {
  return (Array.isArray(details) ? details : []).slice(0, maxListed).filter(isPlainObject);
}

function isErrorStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 400 && status <= 599;
}

/** Where FastAPI found a fault, such as `body.messages.0: `. */
function placeOf({ loc }: Readonly<Record<string, unknown>>): string {
  if (!Array.isArray(loc)) return '';
  return `${loc.filter((step) => typeof step === 'string' || typeof step === 'number').join('.')}: `;
}

function firstText(error: Readonly<Record<string, unknown>>, names: readonly string[]): string | null {
  for (const name of names) {
    const value = error[name];
    if (typeof value === 'string' && value.trim() !== '') return value;
  }
  return null;
}

/** The title of a web page, as of a proxy in front of the upstream. */
function titleOf(page: string): string | null {
  const lower = page.toLowerCase();
  const tag = lower.indexOf('<title');
  const start = tag === -1 ? -1 : lower.indexOf('>', tag);
  const end = start === -1 ? -1 : lower.indexOf('</title', start);
  return end === -1 ? null : page.slice(start + 1, end);
}

/** The form of an error's name. */
const codePattern = /^[A-Za-z][\w.:#/-]{0,63}$/;

/** The words as they may be shown. A code that the sanitiser would change is left out. */
export function showWords(words: ErrorWords, status: number | null, sanitise: Sanitise): UpstreamError {
  const { message } = words;
  const codes = [...new Set(words.codes)].filter((code) => codePattern.test(code)).slice(0, maxShownCodes);
  return {
    status: status ?? words.status,
    code: codes.find((code) => markOfShape(code) === null && sanitise(code) === code) ?? null,
    message: message === null ? null : sanitise(message),
  };
}

/** How much of a message's beginning is compared with the fixed sentences of providers, in UTF-16 code units. */
const maxOpeningChars = 256;

/**
 * How much of a long message's end is read beside its beginning, in UTF-16 code units: many end with what is wrong, behind
 * what they quote.
 */
const tailChars = 400;

/** The longest name of an error, in UTF-16 code units, and how many of an error's names decide. */
const maxCodeChars = 64;
const maxDecidingCodes = 16;

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
    codes: codes.filter(({ length }) => length <= maxCodeChars).slice(0, maxDecidingCodes),
    opening: (message ?? '').slice(0, maxOpeningChars).trimStart(),
    shown: [shownMessage, tail, details].filter((text) => text !== null).join('\n'),
    name: shownMessage !== null && codeForm.test(shownMessage) ? shownMessage : null,
    isHidden: message !== null && shownMessage === null,
  };
}

import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { isPlainObject, parseJson } from '../shared/parse-json.ts';
import { nameType } from './contract/value-refusals.ts';
import { findExcess, maxJsonDepth, maxJsonEntries } from './json-depth.ts';
import { findJsonFault } from './json-fault.ts';

/** Fails on bytes that are not UTF-8: replacing them would change the client's text. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Parses the body of a request, or refuses it with the place of its first fault. The text is never quoted. */
export function parseBody(bytes: Uint8Array): Readonly<Record<string, unknown>> | Refusal {
  const excess = findExcess(bytes);
  if (excess === 'depth')
    return refuse('invalid_json', `The request body is nested deeper than ${maxJsonDepth} levels.`);
  if (excess === 'entries')
    return refuse(
      'invalid_value',
      `The request body has more than ${maxJsonEntries} values in its arrays and objects. Shorten the history.`,
    );
  const text = decode(bytes);
  const body = text === null ? undefined : parseJson(text);
  if (isPlainObject(body)) return body;
  return body === undefined ? notJson(bytes, text) : notAnObject(body);
}

/** The refusal of a JSON value that is no object. */
function notAnObject(body: unknown): Refusal {
  const isTwice = typeof body === 'string' && isPlainObject(parseJson(body));
  const advice = isTwice ? ' It was encoded as JSON twice.' : '';
  return refuse(
    'invalid_type',
    `The request body must be a JSON object, but got ${nameType(body)} instead.${advice}`,
  );
}

/** The refusal of bytes that are no JSON; `text` is `null` if they are no UTF-8, either. */
function notJson(bytes: Uint8Array, text: string | null): Refusal {
  // ASCII in UTF-16 is UTF-8, too, with zero bytes in between.
  if (text === null || isUtf16(bytes)) return notUtf8(bytes);
  if (text.trim() === '')
    return refuse('invalid_json', 'The request body is empty. Send a JSON object with a model and its text.');
  const fault = findJsonFault(text);
  const place = fault === null ? '' : ` Line ${fault.line}, column ${fault.column}: ${fault.what}.`;
  return refuse('invalid_json', `The request body is not valid JSON.${place}`);
}

function notUtf8(bytes: Uint8Array): Refusal {
  const found = isUtf16(bytes) ? 'but seems to be UTF-16' : 'which JSON must be';
  return refuse(
    'invalid_json',
    `The request body is not UTF-8 text, ${found}. Check how your HTTP library encodes it.`,
  );
}

/** `null` for bytes that are not UTF-8. */
function decode(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
}

/** Whether text begins like UTF-16, as some shells write it: with its byte order mark, or with a zero byte. */
function isUtf16([first, second]: Uint8Array): boolean {
  const mark = `${first} ${second}`;
  return mark === '255 254' || mark === '254 255' || first === 0 || second === 0;
}

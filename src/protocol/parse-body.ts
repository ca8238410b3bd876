import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { isPlainObject, parseJson } from '../shared/parse-json.ts';
import { nameType } from './contract/value-type.ts';
import { isTooDeep, maxJsonDepth } from './json-depth.ts';
import { findJsonFault } from './json-fault.ts';

/** Fails on bytes that are not UTF-8: replacing them would change the client's text. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Parses the body of a request, or refuses it with the place of its first fault. The text is never quoted. */
export function parseBody(bytes: Uint8Array): Readonly<Record<string, unknown>> | Refusal {
  if (isTooDeep(bytes))
    return refuse('invalid_json', `The request body is nested deeper than ${maxJsonDepth} levels.`);
  const text = isUtf16(bytes) ? null : decode(bytes);
  if (text === null) return notUtf8(bytes);
  if (text.trim() === '')
    return refuse('invalid_json', 'The request body is empty. Send a JSON object with a model and its text.');
  const body = parseJson(text);
  if (body === undefined) return notJson(text);
  if (isPlainObject(body)) return body;
  const isTwice = typeof body === 'string' && isPlainObject(parseJson(body));
  const advice = isTwice ? ' It was encoded as JSON twice.' : '';
  return refuse(
    'invalid_type',
    `The request body must be a JSON object, but got ${nameType(body)} instead.${advice}`,
  );
}

function notJson(text: string): Refusal {
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

import type { Environment } from './environment.ts';

/** The most characters of a word that is quoted. */
const maxWordLength = 40;

/** Words in any of the usual styles, such as `maxBody`, `max_tokens`, `X-API-Key` or `v2`, and no random text. */
const words = /^(?:[A-Z]{1,8}|[A-Z]?[a-z]{1,16}(?:[A-Z][a-z]{1,16}){0,4}(?:[A-Z]{2,3})?)\d{0,2}$/;

/** The beginning of a provider's API key, anywhere in a text. */
const secretPrefix = /(?<![A-Za-z0-9])[spr]k[-_]/i;

/** The shortest run of letters and digits that counts as random unless it is a word. */
const minRandomLength = 12;

/**
 * The most characters of a name of a variable that are in parts with figures, where in one of them letters follow those, as they
 * do in random text.
 */
const maxMixedChars = 7;

/** Whether a text consists of words, and so is hardly a secret. */
function isWords(text: string): boolean {
  return (
    text.length <= maxWordLength &&
    !secretPrefix.test(text) &&
    text.split(/[-_]/).every((word) => word === '' || words.test(word)) &&
    (text.match(/\d/g) ?? []).length <= 2
  );
}

/**
 * A key of a config for a message. One that consists of no words may be a secret in the wrong place, or end with one: of
 * `apiKey:sk-…`, `apiKey=sk-…` and `Authorization: Bearer sk-…`, only the first word is written.
 */
export function writeKnownWord(key: string): string {
  if (isWords(key)) return key;
  const [, first = '', separator = ''] = /^([A-Za-z][\w-]*)([:= ])/.exec(key) ?? [];
  return isWords(first) ? `${first}${separator}…` : '…';
}

/** The name of an upstream, a model or a key for a message: any text that does not look like a secret. */
export function writeFreeName(name: string): string {
  const isRandom = name
    .split(/[^A-Za-z0-9]+/)
    .some((run) => run.length >= minRandomLength && !words.test(run));
  const isHidden = isRandom || secretPrefix.test(name) || name.includes('${') || /\p{Cc}/u.test(name);
  return isHidden ? writeKnownWord(name) : name;
}

/** Whether the name of a variable may be in a message: not if it could be a secret in the place of the name. */
export function canQuoteVariable(name: string, environment: Environment): boolean {
  if (environment[name] !== undefined) return true;
  const parts = name.split('_');
  const isMixed = parts.some((part) => /\d.*[A-Z]/.test(part));
  const mixedChars = parts
    .filter((part) => isMixed && /\d/.test(part))
    .reduce((sum, part) => sum + part.length + 1, 0);
  return /^[A-Z_][A-Z0-9_]*$/.test(name)
    ? mixedChars <= maxMixedChars
    : /^[A-Za-z_]{1,40}$/.test(name) && parts.every((part) => part === '' || words.test(part));
}

/** Says that a variable is not set whose name the operator has given. */
export function describeUnset(name: string, environment: Environment): string {
  return canQuoteVariable(name, environment)
    ? `the environment variable ${name} is not set`
    : 'there is no environment variable of this name: give its name, and not the key itself';
}

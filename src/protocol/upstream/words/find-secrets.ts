import { markOfShape } from './secret-shapes.ts';
import type { Mark, Span } from './secret-shapes.ts';

/** One word of a message, without the punctuation behind it. */
interface Word {
  readonly text: string;
  readonly start: number;
  readonly isQuoted: boolean;
  /** Whether a colon or an equals sign follows, so that the next word is its value. */
  readonly isNamed: boolean;
  readonly endsSentence: boolean;
}

/** What the words before a word say of it: that it is a key, or the name of an account. */
interface Expectation {
  readonly mark: '[key]' | '[id]';
  /** Whether any word is hidden; otherwise only one that does not look like ordinary English. */
  readonly isCertain: boolean;
  /** Whether a number is a value, rather than an amount as in `token 4096`. */
  readonly takesNumbers: boolean;
}

/** An address with its scheme, up to a blank or a quotation mark. */
const urls = /[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'`<>“”‘’«»]+/gi;

const words = /[^\s"'`“”‘’«»()[\]{}<>,;|=&]+/g;
const quotes = /["'`“‘«]/;

const secretNames =
  /^(?:keys?|api-?_?keys?|apikey|x-(?:api|goog-api)-key|tokens?|(?:access|auth|refresh|id)_?token|secrets?|client_secret|passw(?:or)?d|pwd|credentials?|authorization|bearer|basic)$/i;
const certainNames =
  /^(?:api-?_?key|apikey|x-.*key|.+_token|secret|client_secret|passw(?:or)?d|pwd|bearer|basic)$/i;
const accountNames =
  /^(?:organi[sz]ations?|org|projects?|accounts?|resources?|deployments?|tenants?|subscriptions?|workspaces?|teams?|customers?|endpoints?|clusters?|ray)$/i;
/** Objects whose name stands behind the word `id` only. */
const countedNames = /^(?:request|req|user|session|trace|correlation|response|message|x-request|cf-ray)$/i;
const joinedIds =
  /^(?:request|user|session|trace|correlation|response|organi[sz]ation|org|project|account|tenant|subscription|workspace|team|customer)[-_]?(?:id|number|name)$/i;

/** Words between such a name and its value. */
const fillers =
  /^(?:provided|given|is|was|with|in|of|value|id|ids|no|number|named?|called|header|the|an?|used|invalid|incorrect|supplied|sent|received|your|key|ending|ends|starting|starts|beginning|begins|bearer|basic|api|#)$/i;

/** Before a part of a key, as in "the key ending in abcd". */
const partWords = /^(?:ending|ends|starting|starts|beginning|begins)$/i;

/** Words before an address, and one of a host without dots. */
const placeWords = /^(?:to|at|from|host|upstream|server|on|via|address|peer|proxy)$/i;
/** Codes of failed connections, which stand before the name that could not be reached. */
const connectionCodes = /^(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH)$/;
const placed = /^[a-z][\w-]*:\d{2,5}$/i;
const certainPlaceWords = /^(?:to|host|server|upstream|via|address|peer|proxy)$/i;
const dotted = /^[a-z][\w-]*(?:\.[\w-]+)+(?::\d{2,5})?$/i;

/** How many words may stand between a name and its value. */
const maxFillers = 4;

/** Ordinary English: lower case, perhaps with a capital in front. */
const plainWord = /^[A-Z]?[a-z]{1,14}$/;

/** A field or a code, such as `max_tokens` and `model-not-found`. */
const fieldName = /^[a-z]+(?:[-_.][a-z]+)+$/;

/** Finds what looks like a secret in a message, apart from the words in `names`. Its work is linear in the message. */
export function findSecrets(message: string, names: ReadonlySet<string>): readonly Span[] {
  const spans: Span[] = [...message.matchAll(urls)].map(({ 0: text, index }) => ({
    start: index,
    end: index + withoutTail(text, '.,;:!?)]}').length,
    mark: '[url]',
  }));
  let expected: Expectation | null = null;
  let before: Word | null = null;
  let fillersLeft = maxFillers;
  for (const word of splitWords(message)) {
    const expects = expectationOf(word, before);
    const isFiller = fillersLeft > 0 && fillers.test(word.text);
    const mark = names.has(word.text)
      ? null
      : (markOfWord(word, before) ?? (isFiller ? null : markAsExpected(word, expected)));
    if (mark !== null) spans.push({ start: word.start, end: word.start + word.text.length, mark });
    if (expects !== null && mark === null) {
      expected = expects;
      fillersLeft = maxFillers;
    } else if (expected !== null && isFiller) {
      fillersLeft--;
      expected = afterFiller(word, expected);
    } else expected = null;
    if (word.endsSentence) expected = null;
    before = word;
  }
  return spans;
}

function* splitWords(message: string): Generator<Word> {
  for (const { 0: found, index } of message.matchAll(words)) {
    const text = withoutTail(found, '.:!?');
    if (text === '') continue;
    const behind = found.slice(text.length) + message.slice(index + found.length, index + found.length + 3);
    yield {
      text,
      start: index,
      isQuoted: quotes.test(message[index - 1] ?? ''),
      isNamed: /^["'`”]?\s?[:=]/.test(behind),
      endsSentence: /^[.!?]/.test(behind),
    };
  }
}

/** A text without the characters of `tail` at its end. A pattern would try each run of them from each of its characters. */
function withoutTail(text: string, tail: string): string {
  let end = text.length;
  while (end > 0 && tail.includes(text[end - 1] ?? '')) end--;
  return text.slice(0, end);
}

/** Whether a word is the name of a host because of the word before it. */
function isPlaced(text: string, before: string): boolean {
  if (connectionCodes.test(before)) return true;
  return (
    (placed.test(text) && placeWords.test(before)) || (dotted.test(text) && certainPlaceWords.test(before))
  );
}

/** The mark of a word by its own shape, or by that of the parts that colons and backslashes divide it into. */
function markOfWord({ text }: Word, before: Word | null): Mark | null {
  const mark = markOfShape(text);
  if (mark === null && isPlaced(text, before?.text ?? '')) return '[host]';
  if (mark !== null || !/[:\\]/.test(text)) return mark;
  const [name = '', ...values] = text.split(/[:\\]+[nrt"']?/);
  for (const part of [name, ...values]) {
    const found = markOfShape(part);
    if (found !== null) return found;
  }
  const named = nameOf(name);
  if (named === null) return null;
  const isValue = (value: string): boolean =>
    !plainWord.test(value) && (!isAmount(value, named) || joinedIds.test(name));
  return values.some(isValue) ? named : null;
}

/** What a value is by its name. */
function nameOf(name: string): '[key]' | '[id]' | null {
  if (secretNames.test(name)) return '[key]';
  return accountNames.test(name) || joinedIds.test(name) ? '[id]' : null;
}

/** What a word makes of those behind it. */
function expectationOf(word: Word, before: Word | null): Expectation | null {
  const { text, isNamed } = word;
  if (nameOf(text) === '[key]') {
    const isCertain = isNamed && (certainNames.test(text) || /^api$/i.test(before?.text ?? ''));
    return { mark: '[key]', isCertain, takesNumbers: isCertain || !/^tokens?$/i.test(text) };
  }
  const isId = /^(?:id|#)$/i.test(text) && countedNames.test(before?.text ?? '');
  if (!isId && nameOf(text) === null) return null;
  return { mark: '[id]', isCertain: false, takesNumbers: isId || isNamed || joinedIds.test(text) };
}

/** A word between a name and its value may make either more certain. */
function afterFiller({ text, isNamed }: Word, expected: Expectation): Expectation {
  const isPart = expected.mark === '[key]' && partWords.test(text);
  return {
    ...expected,
    isCertain: expected.isCertain || isPart,
    takesNumbers: expected.takesNumbers || isNamed,
  };
}

/** The mark of a word after such a name. A word of ordinary English, or a path of the API, is not its value. */
function markAsExpected(word: Word, expected: Expectation | null): Mark | null {
  if (expected === null) return null;
  const { mark, isCertain, takesNumbers } = expected;
  const { text, isQuoted } = word;
  if (isCertain) return mark;
  if (isAmount(text, mark)) return takesNumbers ? mark : null;
  if (mark === '[id]' && (isQuoted || (takesNumbers && /^[A-Z]/.test(text)))) return mark;
  if (plainWord.test(text) || text.startsWith('/')) return null;
  return fieldName.test(text) && !(mark === '[id]' && takesNumbers) ? null : mark;
}

/** Whether a number counts something, rather than naming an account: those have five digits or more. */
function isAmount(text: string, mark: Mark): boolean {
  return /^[\d.,%]+$/.test(text) && !(mark === '[id]' && /^\d{5}/.test(text));
}

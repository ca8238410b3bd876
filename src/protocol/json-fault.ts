/** The first fault in a text that is not JSON. `what` is one of our own phrases: it never quotes the text. */
interface JsonFault {
  /** Counted from 1. */
  readonly line: number;
  /** In UTF-16 code units, counted from 1, as editors count. */
  readonly column: number;
  readonly what: string;
}

/** Words of other languages where JSON has a word of its own, or none. */
const foreignWords: Readonly<Record<string, string>> = {
  None: 'null',
  nil: 'null',
  NULL: 'null',
  undefined: 'null',
  True: 'true',
  TRUE: 'true',
  False: 'false',
  FALSE: 'false',
  NaN: '',
  Infinity: '',
};

const singleQuote = 'a single quote, but JSON takes only double quotes';
const shellHint = 'which a shell may have removed';

/** What a character means that can't begin a value or a name. */
const wrongStarts: readonly (readonly [RegExp, string])[] = [
  [/['`]/, singleQuote],
  [/[“”‘’„«»]/, 'a typographic quote, but JSON takes only the plain double quote'],
  [/[/#]/, 'a comment, which JSON does not have'],
  [/[+.]/, 'a number that begins with a plus sign or a point'],
  [/\\/, 'a backslash outside of a string: the body may have been escaped twice'],
  [/[,:}\]]/, 'a value is missing here'],
];

/** Finds the first fault of a text that `JSON.parse` rejects; `null` for JSON. Its nesting must be bounded. */
export function findJsonFault(text: string): JsonFault | null {
  const scanner = new JsonScanner(text);
  if (scanner.readAll() || scanner.fault === null) return null;
  const { at, what } = scanner.fault;
  const before = text.slice(0, at).split(/\r\n|\n|\r/);
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1, what };
}

const blanks = /[ \t\n\r]*/y;
const literal = /(?:true|false|null)(?![\w$])/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])/y;
/** All that a string may hold as it is: no quote, no backslash, and nothing below the space. */
const plainChars = /[ !#-[\]-\uffff]*/y;
const escape = /\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/y;
const word = /-?[A-Za-z_$][\w$]*/y;

/** Reads JSON and keeps nothing but the place. Each method returns whether its part of the grammar was there. */
class JsonScanner {
  fault: { readonly at: number; readonly what: string } | null = null;
  #at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  readAll(): boolean {
    if (!this.#readValue()) return false;
    this.#take(blanks);
    return this.#at === this.#text.length || this.#fail('more text after the end of the JSON value');
  }

  #readValue(): boolean {
    this.#take(blanks);
    const first = this.#text[this.#at];
    if (first === '{') return this.#readEntries('}', () => this.#readName() && this.#readValue());
    if (first === '[') return this.#readEntries(']', () => this.#readValue());
    if (first === '"') return this.#readString();
    return this.#take(literal) || this.#take(number) || this.#failAtValue(first);
  }

  /** Reads the entries of an object or an array, and its brackets. */
  #readEntries(closing: '}' | ']', readEntry: () => boolean): boolean {
    this.#at++;
    this.#take(blanks);
    if (this.#skip(closing)) return true;
    for (;;) {
      if (!readEntry()) return false;
      this.#take(blanks);
      if (this.#skip(closing)) return true;
      const comma = this.#at;
      if (!this.#skip(',')) return this.#failAfterEntry(closing);
      this.#take(blanks);
      if (this.#text[this.#at] === closing)
        return this.#fail(`a comma before the closing '${closing}'`, comma);
    }
  }

  #readName(): boolean {
    this.#take(blanks);
    const first = this.#text[this.#at];
    if (first === undefined) return this.#failAtEnd();
    if (first !== '"' && this.#matches(word)) return this.#fail(`a name without double quotes, ${shellHint}`);
    if (first !== '"') return this.#fail(startFault(first) ?? 'a name in double quotes is missing here');
    if (!this.#readString()) return false;
    this.#take(blanks);
    if (this.#skip(':')) return true;
    if (this.#at === this.#text.length) return this.#failAtEnd();
    return this.#fail('a colon is missing after a name');
  }

  #readString(): boolean {
    const start = this.#at++;
    do this.#take(plainChars);
    while (this.#take(escape));
    const stop = this.#text[this.#at];
    if (this.#skip('"')) return true;
    if (stop === undefined) return this.#fail('a string that begins here is never closed', start);
    if (stop === '\\')
      return this.#fail(String.raw`a backslash that begins no JSON escape: write \\ for itself`);
    if (stop === '\n' || stop === '\r')
      return this.#fail(String.raw`a line break in a string: write \n for it`);
    return this.#fail(String.raw`a control character in a string: write it as \t or \u0000`);
  }

  #failAtValue(first: string | undefined): boolean {
    if (first === undefined) return this.#failAtEnd();
    if (this.#at === 0 && first !== "'") return this.#fail('the body does not begin like JSON');
    if (this.#matches(word)) return this.#fail(wordFault(this.#text.slice(this.#at, word.lastIndex)));
    const what = /[-\d]/.test(first) ? 'a number in a form that JSON does not have' : startFault(first);
    return this.#fail(what ?? 'a character that begins no JSON value');
  }

  #failAfterEntry(closing: string): boolean {
    const next = this.#text[this.#at];
    if (next === undefined) return this.#failAtEnd();
    if (/["{[\w-]/.test(next)) return this.#fail('a comma is missing before this place');
    const what = /[/#'“”]/.test(next) ? startFault(next) : null;
    return this.#fail(what ?? `a comma or the closing '${closing}' is missing before this place`);
  }

  #failAtEnd(): boolean {
    return this.#fail('the text ends before the JSON value is complete');
  }

  #fail(what: string, at = this.#at): false {
    this.fault ??= { at, what };
    return false;
  }

  #skip(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  #matches(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    return pattern.test(this.#text);
  }

  #take(pattern: RegExp): boolean {
    if (!this.#matches(pattern)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }
}

function startFault(first: string): string | null {
  return wrongStarts.find(([pattern]) => pattern.test(first))?.[1] ?? null;
}

function wordFault(found: string): string {
  const name = found.replace('-', '');
  const ours = Object.hasOwn(foreignWords, name) ? foreignWords[name] : undefined;
  if (ours === undefined) return `a word without double quotes, ${shellHint}`;
  return ours === ''
    ? `the word ${name}, which JSON does not have`
    : `the word ${name}, which is ${ours} in JSON`;
}

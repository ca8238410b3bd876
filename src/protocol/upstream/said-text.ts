import { KeptText } from '../kept-text.ts';
import type { Answer } from './answer.ts';
import { invalidAnswer } from './failures.ts';

/** Thoughts in front of a text, which a closing copy may have where the deltas had them apart: no text was lost. */
const thoughts = /^\s*<think>[^]*<\/think>\s*$/;

/** The text that a stream has said so far, kept to hold its closing copies against it. */
export class SaidText {
  readonly #text = new KeptText();
  /** How many letters the text has between two indexes. */
  readonly #counted = { start: 0, end: 0, letters: 0 };

  /** The size of the text in UTF-16 code units. */
  get length(): number {
    return this.#text.length;
  }

  /** The text from an index on. */
  from(start: number): string {
    return this.#text.from(start);
  }

  say(text: string, answer: Answer): void {
    this.#text.add(text);
    answer.say(text);
  }

  /**
   * Compares a whole text with the streamed one, which begins at an index. Text of lost deltas is added. A copy that differs
   * is a violation, as the deltas are the text; only one that shows more than they did fails the answer, whose text would
   * be incomplete.
   */
  sayRest(whole: string, start: number, answer: Answer): void {
    if (whole === '') return;
    if (whole.length >= this.length - start) {
      const said = this.from(start);
      if (whole === said) return;
      if (whole.startsWith(said)) return this.say(whole.slice(said.length), answer);
      if (whole.endsWith(said) && thoughts.test(whole.slice(0, -said.length)))
        return void answer.violations.add('inconsistent_end');
    }
    answer.violations.add('inconsistent_end');
    if (lettersOf(whole).length > this.#lettersFrom(start))
      answer.fail(invalidAnswer('a text with more than what it streamed'));
  }

  /** Only new text is counted: a small frame must not cost the work of a long text, again and again. */
  #lettersFrom(start: number): number {
    const counted = this.#counted;
    if (counted.start !== start) Object.assign(counted, { start, end: start, letters: 0 });
    counted.letters += lettersOf(this.from(counted.end)).length;
    counted.end = this.length;
    return counted.letters;
  }
}

/** A text without its white space, which some providers trim or change in copies. */
function lettersOf(text: string): string {
  return text.replace(/\s+/g, '');
}

/** What an event closes, and has a copy of, each after those that it contains. */
const kinds = ['text', 'part', 'item'] as const;

export type ClosedKind = (typeof kinds)[number];

/** The text that was closed last: where it begins, by which events, and the copy of the first of them. */
interface Closed {
  readonly start: number;
  readonly by: readonly ClosedKind[];
  readonly copy: string;
}

/** How much text is compared with copies, in UTF-16 code units: many small ones must not cost the work of a long text each. */
const maxComparedChars = 67_108_864;

/**
 * The text of a stream of items and their parts. What closes one has a copy of its text, and may show text of lost deltas.
 * Positions are missing with some providers, and some close things late: so the text, and the order, say what is closed.
 */
export class SaidParts extends SaidText {
  /** Where the text begins that nothing has closed yet: of a part, and of an item. */
  #partStart = 0;
  #itemStart = 0;
  #last: Closed = { start: 0, by: [], copy: '' };
  #comparedChars = 0;

  /**
   * Takes the copy of a closing event. What it has beyond the end of the streamed text is said; text that is closed already is
   * not said twice; a copy that shows more text than was streamed, but not at its end, fails the answer.
   */
  close(by: ClosedKind, copy: string, answer: Answer): void {
    answer.hasMemory = true;
    const start = by === 'item' ? this.#itemStart : this.#partStart;
    if (!this.#mayCompare(this.length - start + copy.length)) answer.violations.add('inconsistent_end');
    else if (copy === '') this.#note({ start, by: [by], copy }, this.length);
    else if (this.length > start) this.#closeOpen(by, start, copy, answer);
    else this.#closeAgain(by, copy, answer);
  }

  /** Takes the copy of text that nothing has closed in this way, or of a part of it. */
  #closeOpen(by: ClosedKind, start: number, copy: string, answer: Answer): void {
    const open = this.from(start);
    const closed = { start, by: [by], copy };
    const isBegun = copy.startsWith(open) || isSame(copy, open);
    // What is closed late has text of the next one behind it.
    if (!isBegun && open.startsWith(copy)) return this.#note(closed, start + copy.length);
    if (!isBegun && this.#has(copy)) {
      const isLast = this.from(this.length - copy.length) === copy;
      return isLast ? this.#note(closed, this.length) : undefined;
    }
    if (!isBegun && by === 'item' && this.#partStart === this.length && !shows(copy, open))
      return this.#sayWhole(by, copy, answer);
    // Some copies have all of the text so far.
    const isWhole = !isBegun && this.#mayCompare(start) && copy.startsWith(this.from(0));
    this.sayRest(copy, isWhole ? 0 : start, answer);
    this.#note(closed, this.length);
  }

  /** Takes a copy where all text is closed: of the text that was closed last, or of a part of it, or of one without deltas. */
  #closeAgain(by: ClosedKind, copy: string, answer: Answer): void {
    const { start, by: before, copy: firstCopy } = this.#last;
    const isClosed = before.includes(by);
    if (!this.#mayCompare(this.length - start)) return;
    const last = this.from(start);
    if (isClosed && isSame(copy, firstCopy)) return void answer.violations.add('inconsistent_end');
    const isNarrower = before.some((kind) => kinds.indexOf(kind) > kinds.indexOf(by));
    const isBegun = !isClosed && last !== '' && (copy.startsWith(last) || isSame(copy, last));
    if (!isBegun && (isNarrower || by !== 'text') && this.#has(copy)) return;
    if (!isBegun && (isClosed || !shows(copy, last))) return this.#sayWhole(by, copy, answer);
    this.sayRest(copy, start, answer);
    this.#note({ start, by: [...before, by], copy: firstCopy }, this.length);
  }

  /** Takes the copy of a text of which no delta has come. */
  #sayWhole(by: ClosedKind, copy: string, answer: Answer): void {
    const start = this.length;
    this.say(copy, answer);
    this.#note({ start, by: [by], copy }, this.length);
  }

  /** Whether a copy is somewhere in the text, beside its blanks, as far as that may be found out. */
  #has(copy: string): boolean {
    return !this.#mayCompare(this.length) || lettersOf(this.from(0)).includes(lettersOf(copy));
  }

  #mayCompare(chars: number): boolean {
    this.#comparedChars += chars;
    return this.#comparedChars <= maxComparedChars;
  }

  #note(closed: Closed, end: number): void {
    this.#last = closed;
    this.#partStart = Math.max(this.#partStart, end);
    if (closed.by.includes('item')) this.#itemStart = end;
  }
}

/** Whether two texts are the same, but for blanks around them. */
function isSame(one: string, other: string): boolean {
  return one === other || one.trim() === other.trim();
}

/** Whether a copy has all characters of a text in their order: it may be a copy of that, with more in it. */
function shows(copy: string, text: string): boolean {
  let found = 0;
  for (let at = 0; at < copy.length && found < text.length; at++) if (copy[at] === text[found]) found++;
  return text !== '' && found === text.length;
}

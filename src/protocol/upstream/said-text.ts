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
export function lettersOf(text: string): string {
  return text.replace(/\s+/g, '');
}

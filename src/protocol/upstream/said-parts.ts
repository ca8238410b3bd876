import type { Answer } from './answer.ts';
import { SaidText } from './said-text.ts';

/** What an event that closes something repeats, each after those that it contains: a part's text, the part, its item. */
const closings = ['text', 'part', 'item'] as const;

type Closing = (typeof closings)[number];

/** What was closed last: the index at which it began, by which event, and that event's copy. */
interface Closed {
  readonly start: number;
  readonly by: Closing;
  readonly copy: string;
}

/**
 * The text of a stream of items and their parts. What closes them repeats their text, and may have text of lost deltas.
 * Positions are missing with some providers, so the order of the events says what is closed.
 */
export class SaidParts extends SaidText {
  /** Where the text begins that nothing has closed yet: of a part, and of an item. */
  #partStart = 0;
  #itemStart = 0;
  #last: Closed = { start: 0, by: 'item', copy: '' };

  /** Compares a closing copy with the streamed text, and adds what that lacks. What is closed twice is not said twice. */
  close(by: Closing, copy: unknown, answer: Answer): void {
    if (typeof copy !== 'string' || copy === '') return;
    answer.hasMemory = true;
    const start = this.#startOf(by, copy);
    if (start === null) return void answer.violations.add('inconsistent_end');
    this.sayRest(copy, start, answer);
    this.#last = { start, by, copy };
    this.#partStart = this.length;
    if (by === 'item') this.#itemStart = this.length;
  }

  /** Where the text of a closing copy begins; `null` if it is one of what is closed, which adds nothing to it. */
  #startOf(by: Closing, copy: string): number | null {
    const open = by === 'item' ? this.#itemStart : this.#partStart;
    if (this.length > open) return open;
    const last = this.#last;
    const width = closings.indexOf(by) - closings.indexOf(last.by);
    if (width > 0) return last.start;
    const said = this.from(last.start);
    const isRepeated = width === 0 ? copy === said || copy === last.copy : said.endsWith(copy);
    return isRepeated ? null : open;
  }
}

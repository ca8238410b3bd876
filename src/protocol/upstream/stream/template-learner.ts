import type { Answer } from '../answer.ts';
import { FrameTemplate } from './frame-template.ts';

/** How many frames of text are read in full before their form is learned: short answers are not worth it. */
const leastSeen = 4;
/** The same after forms that were of little use: a stream whose frames all differ must not cost much more. */
const mostSeen = 64;
/** How many frames a form must have served, so that the next one is learned as readily as the first. */
const usefulCopies = 16;

/** The text with which a form is tried out: none that an upstream is likely to send. */
const probe = 'textgate reads this back';

/** Learns the form of a stream's text frames from those that were read in full. */
export class TemplateLearner {
  /** The form that was learned last, if it passed its trial. */
  template: FrameTemplate | null = null;
  /** How many frames were copied by it. */
  copies = 0;
  #seen = 0;
  #wanted = leastSeen;
  readonly #readInFull: (frame: string) => Answer;

  /** `readInFull` reads one frame into a new answer that has said something before. */
  constructor(readInFull: (frame: string) => Answer) {
    this.#readInFull = readInFull;
  }

  /** Takes a whole frame that was read in full and said just this text. */
  saw(frame: string, text: string): void {
    if (++this.#seen < this.#wanted) return;
    this.#seen = 0;
    this.#wanted = this.copies >= usefulCopies ? leastSeen : Math.min(2 * this.#wanted, mostSeen);
    this.copies = 0;
    const guess = FrameTemplate.of(frame, text);
    this.template = guess !== null && this.#isTrue(guess) ? guess : null;
  }

  /**
   * Whether a frame of this form says its text and nothing else: no thought, no usage, no finish reason, no fault, and
   * nothing that its dialect remembers.
   */
  #isTrue(guess: FrameTemplate): boolean {
    const answer = this.#readInFull(guess.filled(probe));
    const { hasReason, hasReport, hasMemory, thoughts, violations } = answer;
    const { deltas, ending } = answer.take();
    const saysMore = hasReason || hasReport || thoughts.chars > 0 || violations.size > 0 || ending !== null;
    return deltas.length === 1 && deltas[0] === probe && !saysMore && !hasMemory;
  }
}

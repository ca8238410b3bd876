import { parseJson } from '../../../shared/parse-json.ts';
import { maxEventChars } from '../../sse.ts';
import type { Answer } from '../answer.ts';

/**
 * The form of a stream's text frames: what comes before and after the text, which is all that changes from one such
 * frame to the next, but for values that no dialect reads. It has the frame as it arrived, its line ends included.
 */
export class FrameTemplate {
  readonly #prefix: FramePart;
  readonly #suffix: FramePart;
  /** Where the frame that was read last ends. */
  end = 0;

  constructor(prefix: FramePart, suffix: FramePart) {
    this.#prefix = prefix;
    this.#suffix = suffix;
  }

  /**
   * The form of a frame that said `text`; `null` if the text is not exactly once in it, as a JSON string in its usual
   * notation. It is a guess until `filled` was read in full, with another text.
   */
  static of(frame: string, text: string): FrameTemplate | null {
    const literal = JSON.stringify(text);
    const start = frame.indexOf(literal);
    if (start === -1 || frame.includes(literal, start + 1)) return null;
    const prefix = new FramePart(frame.slice(0, start + 1));
    return new FrameTemplate(prefix, new FramePart(frame.slice(start + literal.length - 1)));
  }

  /** A frame of this form with another text, and with other values of what no dialect reads. */
  filled(text: string): string {
    return this.#prefix.changed + JSON.stringify(text).slice(1, -1) + this.#suffix.changed;
  }

  /**
   * Reads the text of the frame at `at`, and sets `end`. Returns `null` if no whole frame of this form is there, or if
   * its text is no JSON string, or empty: then a dialect may take the text from another place in the frame.
   */
  read(stream: string, at: number): string | null {
    const start = this.#prefix.skip(stream, at);
    const textEnd = start === -1 ? -1 : skipString(stream, start);
    const end = textEnd === -1 ? -1 : this.#suffix.skip(stream, textEnd);
    if (end === -1 || end - at > maxEventChars) return null;
    const literal = stream.slice(start, textEnd);
    const text = literal.includes('\\') ? parseJson(`"${literal}"`) : literal;
    if (typeof text !== 'string' || text === '') return null;
    this.end = end;
    return text;
  }
}

const quote = 0x22;
const backslash = 0x5c;
const firstPrintable = 0x20;
const [zero, nine] = [0x30, 0x39];

/** Fields that differ from frame to frame and that no dialect reads: a count, and OpenAI's padding of every chunk. */
const unreadField = /"(?:sequence_number":(?=\d)|obfuscation":")/;

/** The fixed characters of a frame before its text, or those after it, around at most one value that no dialect reads. */
class FramePart {
  /** The characters before the value, or all of them; and those after it, `null` without one. */
  readonly #head: string;
  readonly #tail: string | null;
  /** Whether the value is a string: its quotes belong to the fixed characters. */
  readonly #isString: boolean;

  constructor(written: string) {
    const found = unreadField.exec(written);
    const start = found === null ? written.length : found.index + found[0].length;
    this.#isString = written[start - 1] === '"';
    const end = found === null ? -1 : this.#skipValue(written, start);
    this.#head = end === -1 ? written : written.slice(0, start);
    this.#tail = end === -1 ? null : written.slice(end);
  }

  /** This part with another value, if it has one. */
  get changed(): string {
    return this.#tail === null ? this.#head : `${this.#head}${this.#isString ? 'x' : '7'}${this.#tail}`;
  }

  /** Returns where the part that begins at `at` ends; -1 if it does not stand there. */
  skip(stream: string, at: number): number {
    const end = at + this.#head.length;
    // A comparison of slices is faster than `startsWith`.
    if (stream.slice(at, end) !== this.#head) return -1;
    if (this.#tail === null) return end;
    const tailAt = this.#skipValue(stream, end);
    const tailEnd = tailAt + this.#tail.length;
    return tailAt !== -1 && stream.slice(tailAt, tailEnd) === this.#tail ? tailEnd : -1;
  }

  /** Returns where the value that begins at `at` ends; -1 if it is none, or one that has to be read as JSON. */
  #skipValue(stream: string, at: number): number {
    if (!this.#isString) return skipCount(stream, at);
    const end = skipString(stream, at);
    return end !== -1 && stream.slice(at, end).includes('\\') ? -1 : end;
  }
}

/** JSON allows no zero before other digits. */
function skipCount(stream: string, at: number): number {
  let end = at;
  for (let code = stream.charCodeAt(end); code >= zero && code <= nine; code = stream.charCodeAt(++end));
  const isCount = end > at && (end === at + 1 || stream.charCodeAt(at) !== zero);
  return isCount ? end : -1;
}

/** Returns where the characters of a JSON string that begin at `at` end; -1 if they are none. */
function skipString(stream: string, at: number): number {
  let end = at;
  for (let code = stream.charCodeAt(end); code !== quote; code = stream.charCodeAt(++end)) {
    if (code === backslash) end++;
    // Beyond the end of the stream the code is NaN, which is not at least anything.
    else if (!(code >= firstPrintable)) return -1;
  }
  return end;
}

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

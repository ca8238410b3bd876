import { parseJson } from '../../../shared/parse-json.ts';
import { maxEventChars } from '../../sse.ts';
import { FramePart, skipString } from './frame-part.ts';

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

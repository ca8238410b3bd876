import { parseJson } from '../../../shared/parse-json.ts';
import { maxEventChars } from '../../sse.ts';

const quote = 0x22;
const backslash = 0x5c;
const firstPrintable = 0x20;

/**
 * The form of a stream's text frames: what comes before and after the text, which is all that changes from one such
 * frame to the next. It has the frame as it arrived, its line ends included.
 */
export class FrameTemplate {
  readonly #prefix: string;
  readonly #suffix: string;
  /** Where the frame that was read last ends. */
  end = 0;

  constructor(prefix: string, suffix: string) {
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
    return new FrameTemplate(frame.slice(0, start + 1), frame.slice(start + literal.length - 1));
  }

  /** A frame of this form with another text. */
  filled(text: string): string {
    return this.#prefix + JSON.stringify(text).slice(1, -1) + this.#suffix;
  }

  /**
   * Reads the text of the frame at `at`, and sets `end`. Returns `null` if no whole frame of this form is there, or if
   * its text is no JSON string.
   */
  read(stream: string, at: number): string | null {
    const start = at + this.#prefix.length;
    // A comparison of slices is faster than `startsWith`.
    if (stream.slice(at, start) !== this.#prefix) return null;
    let isEscaped = false;
    let end = start;
    for (let code = stream.charCodeAt(end); code !== quote; code = stream.charCodeAt(++end)) {
      if (code === backslash) {
        isEscaped = true;
        end++;
        // Beyond the end of the stream the code is NaN, which is not at least anything.
      } else if (!(code >= firstPrintable)) return null;
    }
    const after = end + this.#suffix.length;
    if (stream.slice(end, after) !== this.#suffix || after - at > maxEventChars) return null;
    const literal = stream.slice(start, end);
    const text = isEscaped ? parseJson(`"${literal}"`) : literal;
    if (typeof text !== 'string') return null;
    this.end = after;
    return text;
  }
}

const quote = 0x22;
const backslash = 0x5c;
const firstPrintable = 0x20;
const [zero, nine] = [0x30, 0x39];

/** Fields that differ from frame to frame and that no dialect reads: a count, and OpenAI's padding of every chunk. */
const unreadField = /"(?:sequence_number":(?=\d)|obfuscation":")/;

/** The fixed characters of a frame before its text, or those after it, around at most one value that no dialect reads. */
export class FramePart {
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
export function skipString(stream: string, at: number): number {
  let end = at;
  for (let code = stream.charCodeAt(end); code !== quote; code = stream.charCodeAt(++end)) {
    if (code === backslash) end++;
    // Beyond the end of the stream the code is NaN, which is not at least anything.
    else if (!(code >= firstPrintable)) return -1;
  }
  return end;
}

/** How much is collected before it is kept in one piece, in UTF-16 code units. */
const pieceChars = 256;

/**
 * A text that arrives bit by bit and is kept. Bits that are only appended to a string take some fifty bytes each, and one
 * that was cut out of what a socket delivered holds all of that: so they are copied, some at a time.
 */
export class KeptText {
  readonly #pieces: string[] = [];
  #collected = '';
  #length = 0;

  /** The size of the text in UTF-16 code units. */
  get length(): number {
    return this.#length;
  }

  add(text: string): void {
    this.#length += text.length;
    this.#collected += text;
    if (this.#collected.length < pieceChars) return;
    const isAscii = Buffer.byteLength(this.#collected) === this.#collected.length;
    // Not UTF-8: a pair of surrogates may be cut.
    const encoding = isAscii ? 'latin1' : 'utf16le';
    this.#pieces.push(Buffer.from(this.#collected, encoding).toString(encoding));
    this.#collected = '';
  }

  toString(): string {
    return this.#pieces.join('') + this.#collected;
  }

  /** The text from an index on, or up to another one; copies that part alone. */
  from(start: number, end = this.#length): string {
    let begin = this.#length - this.#collected.length;
    const last = begin < end ? this.#collected : '';
    let first = this.#pieces.length;
    let behind = first;
    while (first > 0 && begin > start) {
      begin -= this.#pieces[--first]?.length ?? 0;
      if (begin >= end) behind = first;
    }
    return (this.#pieces.slice(first, behind).join('') + last).slice(start - begin, end - begin);
  }
}

/** How much of a text is kept, in UTF-16 code units: tokens are counted in that part and extrapolated for the rest. */
const maxKeptChars = 262_144;

/**
 * A sample of a text for counting its tokens: its beginning and its full size, so that an answer of any length takes
 * bounded memory.
 */
export class TextSample {
  /** The size of the whole text in UTF-16 code units. */
  chars = 0;
  readonly #kept = new KeptText();

  /** The first 262,144 UTF-16 code units. */
  get beginning(): string {
    return this.#kept.toString();
  }

  /** Appends text to the sample. */
  add(text: string): void {
    this.chars += text.length;
    const room = maxKeptChars - this.#kept.length;
    if (room > 0) this.#kept.add(text.length <= room ? text : text.slice(0, room));
  }
}

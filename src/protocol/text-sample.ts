/** How much of a text is kept, in UTF-16 code units: tokens are counted in that part and extrapolated for the rest. */
const maxKeptChars = 262_144;

/** How much is collected before it is kept in one piece, in UTF-16 code units. */
const pieceChars = 256;

/**
 * A sample of a text for counting its tokens: its beginning and its full size, so that an answer of any length takes
 * bounded memory.
 */
export class TextSample {
  /** The size of the whole text in UTF-16 code units. */
  chars = 0;
  /** The size of the kept pieces, and of what came after them without being kept, in bytes of UTF-8. */
  #bytes = 0;
  readonly #pieces: string[] = [];
  #keptChars = 0;
  #collected = '';

  /** The first 262,144 UTF-16 code units. */
  get beginning(): string {
    return this.#pieces.join('') + this.#collected.slice(0, maxKeptChars - this.#keptChars);
  }

  /** The size of the whole text in bytes of UTF-8. */
  get bytes(): number {
    return this.#bytes + Buffer.byteLength(this.#collected);
  }

  /** Appends text to the sample. */
  add(text: string): void {
    this.chars += text.length;
    this.#collected += text;
    if (this.#collected.length >= pieceChars) this.#keep();
  }

  #keep(): void {
    const text = this.#collected;
    const bytes = Buffer.byteLength(text);
    this.#bytes += bytes;
    this.#collected = '';
    if (this.#keptChars === maxKeptChars) return;
    const kept = text.slice(0, maxKeptChars - this.#keptChars);
    this.#keptChars += kept.length;
    // A copy: text that was added bit by bit takes some fifty bytes for every bit, and may hold what it was cut out of.
    const encoding = bytes === text.length ? 'latin1' : 'utf16le';
    this.#pieces.push(Buffer.from(kept, encoding).toString(encoding));
  }
}

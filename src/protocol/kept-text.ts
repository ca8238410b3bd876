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

  /** The text from an index on; takes time for that part alone. */
  from(start: number): string {
    let begin = this.#length - this.#collected.length;
    let piece = this.#pieces.length;
    while (piece > 0 && begin > start) begin -= this.#pieces[--piece]?.length ?? 0;
    return (this.#pieces.slice(piece).join('') + this.#collected).slice(start - begin);
  }
}

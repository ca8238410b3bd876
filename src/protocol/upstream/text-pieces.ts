/** A first half of a surrogate pair at the end of a text. */
const firstHalf = /[\uD800-\uDBFF]$/;

/** The text of an answer in the pieces in which it arrives, each of them well-formed. */
export class TextPieces {
  /** The size of the whole text in UTF-16 code units. */
  chars = 0;
  /** The pieces that have arrived since they were last taken. */
  #waiting: string[] = [];
  /** The first half of a surrogate pair whose other half has not come yet. */
  #half = '';

  get count(): number {
    return this.#waiting.length;
  }

  get last(): string {
    return this.#waiting.at(-1) ?? '';
  }

  /**
   * Adds a piece, and returns what of it can be sent. Half a surrogate pair at its end waits for the next piece: clients
   * that print each piece break at halves.
   */
  add(piece: string): string {
    if (this.#half === '' && piece.isWellFormed()) return this.#push(piece);
    const text = this.#half + piece;
    this.#half = firstHalf.exec(text)?.[0] ?? '';
    return this.#push(text.slice(0, text.length - this.#half.length).toWellFormed());
  }

  /** Ends the text: a half that is left is no character. */
  end(): string {
    const left = this.#half.toWellFormed();
    this.#half = '';
    return this.#push(left);
  }

  take(): string[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  #push(text: string): string {
    if (text === '') return text;
    this.chars += text.length;
    this.#waiting.push(text);
    return text;
  }
}

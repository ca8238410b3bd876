/** The pieces of a body, taken one at a time; what of one is not needed can be put back. */
export class Pieces {
  readonly #source: AsyncIterator<Uint8Array>;
  #unread: Uint8Array | null = null;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** The next piece, which is never empty; `null` at the end. */
  async next(): Promise<Uint8Array | null> {
    const unread = this.#unread;
    this.#unread = null;
    if (unread !== null) return unread;
    for (;;) {
      const { done, value } = await this.#source.next();
      if (done === true) return null;
      if (value.length > 0) return value;
    }
  }

  /** Puts the rest of the piece that was taken last back. */
  unread(rest: Uint8Array): void {
    if (rest.length > 0) this.#unread = rest;
  }

  /** Takes that many bytes; fewer only at the end. */
  async take(count: number): Promise<Buffer> {
    const taken: Uint8Array[] = [];
    for (let missing = count; missing > 0;) {
      const piece = await this.next();
      if (piece === null) break;
      taken.push(piece.subarray(0, missing));
      this.unread(piece.subarray(missing));
      missing -= Math.min(missing, piece.length);
    }
    return Buffer.concat(taken);
  }
}

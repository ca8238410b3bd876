/** The most blanks before the first tag that are kept back, in UTF-16 code units. */
const maxBlankChars = 1_024;

/** What a piece of an answer is: thoughts, and text behind them. */
interface Told {
  readonly thought: string;
  readonly text: string;
}

/**
 * Tells the thoughts of an answer from its text where they stand in it, as `<think>…</think>` does. Only at the beginning:
 * later the same tag is text, such as one that the answer explains. The blanks around the thoughts are no text either.
 */
export class TaggedThoughts {
  readonly #opening: string;
  readonly #closing: string;
  #place: 'before' | 'within' | 'behind' | 'text' = 'before';
  /** What has arrived and is not told yet: the beginning of a tag, or blanks. */
  #kept = '';

  /** `tag` is the name of the tag. */
  constructor(tag: string) {
    this.#opening = `<${tag}>`;
    this.#closing = `</${tag}>`;
  }

  /** Takes the next piece. */
  take(piece: string): Told {
    this.#kept += piece;
    if (this.#place === 'before') this.#findOpening();
    const thought = this.#place === 'within' ? this.#takeThought() : '';
    if (this.#place === 'behind') this.#skipBlanks();
    return { thought, text: this.#place === 'text' ? this.#takeKept() : '' };
  }

  /** Takes the end of the answer: what was kept back is no tag. */
  end(): Told {
    const isThought = this.#place === 'within';
    const isText = this.#place === 'before' && this.#kept.trim() !== '';
    const kept = this.#takeKept();
    return { thought: isThought ? kept : '', text: isText ? kept : '' };
  }

  #takeKept(): string {
    const kept = this.#kept;
    this.#kept = '';
    return kept;
  }

  #findOpening(): void {
    const start = this.#kept.trimStart();
    if (this.#kept.length - start.length > maxBlankChars) this.#place = 'text';
    else if (start.startsWith(this.#opening)) {
      this.#place = 'within';
      this.#kept = start.slice(this.#opening.length);
    } else if (!this.#opening.startsWith(start)) this.#place = 'text';
  }

  /** The thoughts up to the closing tag, or up to what may be its beginning. */
  #takeThought(): string {
    const end = this.#kept.indexOf(this.#closing);
    const cut = end === -1 ? this.#kept.length - this.#closingAtEnd() : end;
    const thought = this.#kept.slice(0, cut);
    this.#kept = this.#kept.slice(end === -1 ? cut : cut + this.#closing.length);
    if (end !== -1) this.#place = 'behind';
    return thought;
  }

  /** How many characters at the end may be the beginning of the closing tag. */
  #closingAtEnd(): number {
    let length = Math.min(this.#closing.length - 1, this.#kept.length);
    while (length > 0 && !this.#closing.startsWith(this.#kept.slice(-length))) length--;
    return length;
  }

  #skipBlanks(): void {
    this.#kept = this.#kept.trimStart();
    if (this.#kept !== '') this.#place = 'text';
  }
}

import { KeptText } from './kept-text.ts';

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

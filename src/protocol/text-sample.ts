/** How much of a text is kept, in UTF-16 code units: tokens are counted in that part and extrapolated for the rest. */
const maxKeptChars = 262_144;

/**
 * A sample of a text for counting its tokens: its beginning and its full size, so that an answer of any length takes
 * bounded memory.
 */
export class TextSample {
  /** The first 262,144 UTF-16 code units. */
  beginning = '';
  /** The size of the whole text in UTF-16 code units. */
  chars = 0;
  /** The size of the whole text in bytes of UTF-8. */
  bytes = 0;

  /** Appends text to the sample. */
  add(text: string): void {
    this.chars += text.length;
    this.bytes += Buffer.byteLength(text);
    if (this.beginning.length < maxKeptChars)
      this.beginning += text.slice(0, maxKeptChars - this.beginning.length);
  }
}

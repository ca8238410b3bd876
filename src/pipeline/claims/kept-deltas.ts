import { KeptText } from '../../protocol/kept-text.ts';

/**
 * How many deltas are had at a time, and of how many UTF-16 code units: a client that comes later is sent so much before it is
 * seen whether it reads. A frame is many times as large as a small delta, and all frames of an answer at once would wait in
 * memory for each such client.
 */
const maxDeltasAtOnce = 64;
const maxCharsAtOnce = 8_192;

/** How much memory for packed deltas is taken at a time, in bytes: those of one answer are at most as large. */
const blockBytes = 262_144;

/** The size of where a delta ends, in bytes. */
const endBytes = Uint32Array.BYTES_PER_ELEMENT;

/**
 * Memory outside of JavaScript's heap for what is kept for a while, taken in blocks, and given back when nothing in a block is
 * kept any more, which is what ends in the order of its beginning. Of what lived in the heap V8 keeps the pages, as each has
 * something else in it, too; and so does the C library where each answer has memory of its own.
 */
export class Blocks {
  #block = new ArrayBuffer(0);
  #used = 0;

  take(bytes: number): Bytes {
    if (this.#used + bytes > this.#block.byteLength) {
      this.#block = new ArrayBuffer(Math.max(blockBytes, bytes));
      this.#used = 0;
    }
    const taken = { buffer: this.#block, offset: this.#used, bytes };
    // What follows begins where numbers may begin.
    this.#used += Math.ceil(bytes / endBytes) * endBytes;
    return taken;
  }
}

/** Some bytes of a block. */
interface Bytes {
  readonly buffer: ArrayBuffer;
  readonly offset: number;
  readonly bytes: number;
}

/** The deltas of one answer, as they have come: its text, and where each of them ends in it. */
export class KeptDeltas {
  #text: KeptText | PackedText = new KeptText();
  #ends: number[] | Uint32Array = [];

  /** All of the text. */
  get text(): string {
    return this.#text.from(0);
  }

  add(delta: string): void {
    if (!(this.#text instanceof KeptText && Array.isArray(this.#ends)))
      throw new Error('a delta came behind the last one');
    this.#text.add(delta);
    this.#ends.push(this.#text.length);
  }

  /** Some of them from one on, and one at least where there is one. */
  from(first: number): readonly string[] {
    const offset = first === 0 ? 0 : (this.#ends[first - 1] ?? 0);
    const ends = this.#ends.slice(first, first + maxDeltasAtOnce);
    const tooMuch = ends.findIndex((end, at) => at > 0 && end - offset > maxCharsAtOnce);
    const sent = tooMuch === -1 ? ends : ends.slice(0, tooMuch);
    const text = this.#text.from(offset, sent.at(-1) ?? offset);
    let begin = 0;
    return Array.from(sent, (end) => {
      const delta = text.slice(begin, end - offset);
      begin = end - offset;
      return delta;
    });
  }

  /** Nothing is added any more: they are kept in a block. */
  pack(blocks: Blocks): void {
    const text = this.text;
    const ends = this.#ends;
    const isAscii = Buffer.byteLength(text) === text.length;
    const size = ends.length * endBytes;
    const { buffer, offset, bytes } = blocks.take(size + text.length * (isAscii ? 1 : 2));
    this.#ends = new Uint32Array(buffer, offset, ends.length);
    this.#ends.set(ends);
    this.#text = new PackedText(Buffer.from(buffer, offset + size, bytes - size), text, isAscii);
  }
}

/** A text in a block, in one byte for each UTF-16 code unit, or two. */
class PackedText {
  readonly #bytes: Buffer;
  readonly #unitBytes: 1 | 2;

  constructor(bytes: Buffer, text: string, isAscii: boolean) {
    this.#bytes = bytes;
    this.#unitBytes = isAscii ? 1 : 2;
    bytes.write(text, this.#encoding);
  }

  /** The text from an index on, or up to another one; copies that part alone. */
  from(start: number, end = this.#bytes.length / this.#unitBytes): string {
    return this.#bytes.toString(this.#encoding, start * this.#unitBytes, end * this.#unitBytes);
  }

  /** Not UTF-8: a pair of surrogates may be cut. */
  get #encoding(): 'latin1' | 'utf16le' {
    return this.#unitBytes === 1 ? 'latin1' : 'utf16le';
  }
}

import { isAscii, isUtf8 } from 'node:buffer';

/** Decodes UTF-8 that arrives in pieces, like a `TextDecoder`, but without its cost for pieces that are valid alone. */
export class Utf8Decoder {
  /** Used from a piece that is not valid alone, until one ends with a whole character. */
  #decoder: TextDecoder | null = null;

  /** Decodes the next piece; a character that is cut off at its end is kept for the next one. */
  push(bytes: Uint8Array): string {
    if (this.#decoder === null) {
      if (isAscii(bytes)) return viewOf(bytes).toString('latin1');
      if (isUtf8(bytes)) return viewOf(bytes).toString('utf8');
      this.#decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    }
    const text = this.#decoder.decode(bytes, { stream: true });
    if (endsWithAscii(bytes)) this.#decoder = null;
    return text;
  }

  /** Decodes what is left at the end: a replacement character for a cut one. */
  end(): string {
    return this.#decoder?.decode() ?? '';
  }
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function endsWithAscii(bytes: Uint8Array): boolean {
  const last = bytes.at(-1);
  return last !== undefined && last < 0x80;
}

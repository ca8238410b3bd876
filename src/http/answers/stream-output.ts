import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';

/**
 * Writes the parts of a streamed answer. Node writes a chunk in four pieces, at the end of the turn; on our own listeners
 * a part goes to the socket at once and in one piece, in chunked framing of our own. Another host may have wrapped the
 * response, for example to compress it, so there it is the only way.
 */
export class StreamOutput {
  readonly #response: ServerResponse;
  readonly #framesParts: boolean;
  /** Whether Node has the head, and has written it before anything that is written to the socket. */
  #hasBegun = false;

  /** `framesParts`: the response belongs to one of our own listeners. */
  constructor(response: ServerResponse, framesParts: boolean) {
    this.#response = response;
    this.#framesParts = framesParts;
  }

  /** Writes a part. Returns what will emit `drain` when the client can take more; `null` if it can now. */
  write(text: string): Writable | null {
    const response = this.#response;
    const { socket } = response;
    // Without a socket, the answer to an earlier request on the connection is pending. A corked response holds parts back
    // until the end of the turn, which have to go first. HTTP/1.0 has no chunks.
    const isDirect = this.#framesParts && this.#hasBegun && response.chunkedEncoding;
    if (isDirect && socket !== null && response.writableCorked === 0) {
      const bytes = Buffer.byteLength(text);
      const framed = `${bytes.toString(16)}\r\n${text}\r\n`;
      return socket.write(framed, bytes === text.length ? 'latin1' : 'utf8') ? null : socket;
    }
    this.#hasBegun = true;
    // As bytes: after a text with characters of several bytes, Node 26 does not report that the client can take more.
    return response.write(Buffer.from(text)) ? null : response;
  }
}

import type { UpstreamFault } from '../../domain/ports/upstreams.ts';
import type { BodyQueue, Source } from '../body-queue.ts';
import type { decodersOf } from './content-codings.ts';
import { CodingError, Pieces } from './content-codings.ts';

/** How many bytes that are not decoded yet pause the connection. */
const highWaterBytes = 65_536;

/**
 * What a compressed body may become, at every one of its codings: so long in bytes, and beyond that so many times as long as
 * what was received. Texts and their frames take a tenth to a fiftieth, so a longer one is there to cost memory and time.
 */
const maxFreeBytes = 4 * 1_048_576;
const maxRatio = 100;

/** Decodes a body on its way from a connection to its queue. While the queue is paused, so is the decoding. */
export class BodyDecoder implements Source {
  readonly #queue: BodyQueue;
  readonly #connection: Source;
  #chunks: Uint8Array[] = [];
  #waitingBytes = 0;
  #receivedBytes = 0;
  #isConnectionPaused = false;
  #isQueuePaused = false;
  /** Whether nothing more is decoded: the compressed data have ended, or can't be decoded, or are not needed. */
  #isOver = false;
  /** How the connection ended the body; `undefined` before that. */
  #end: UpstreamFault | null | undefined = undefined;
  #wake = (): void => {};

  constructor(decoders: NonNullable<ReturnType<typeof decodersOf>>, queue: BodyQueue, connection: Source) {
    this.#queue = queue;
    this.#connection = connection;
    let body: AsyncIterable<Uint8Array> = this.#received();
    for (const decode of decoders) body = this.#bounded(decode(new Pieces(body)));
    queue.attach(this);
    void this.#decode(body);
  }

  /** Takes a chunk from the connection, and pauses it at the high-water mark. */
  push(chunk: Uint8Array): void {
    this.#receivedBytes += chunk.length;
    if (this.#isOver || this.#queue.isReleased) return this.#dropRest();
    this.#chunks.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= highWaterBytes && !this.#isConnectionPaused) {
      this.#isConnectionPaused = true;
      this.#connection.pause();
    }
    this.#wake();
  }

  /** Ends the body from the connection's side. What came before that is still decoded. */
  finish(fault: UpstreamFault | null): void {
    this.#end = fault;
    if (this.#isOver || this.#queue.isReleased) this.#queue.finish(fault);
    this.#wake();
  }

  pause(): void {
    this.#isQueuePaused = true;
  }

  resume(): void {
    this.#isQueuePaused = false;
    if (this.#queue.isReleased) this.#dropRest();
    this.#wake();
  }

  abort(reason: Error): void {
    this.#isOver = true;
    this.#chunks = [];
    this.#isConnectionPaused = false;
    // The connection may have another call once it has ended this one.
    if (this.#end === undefined) this.#connection.abort(reason);
    this.#wake();
  }

  /** The body as it is received, until nothing more of it is needed. */
  async *#received(): AsyncGenerator<Uint8Array> {
    while (!this.#isOver) {
      const chunk = this.#chunks.shift();
      if (chunk === undefined) {
        if (this.#end !== undefined) return;
        await this.#changed();
        continue;
      }
      this.#waitingBytes -= chunk.length;
      if (this.#chunks.length === 0) this.#resumeConnection();
      yield chunk;
    }
  }

  /** What a decoder makes of its body, as long as it is not too much. */
  async *#bounded(decoded: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const piece of decoded) {
      bytes += piece.length;
      if (bytes > Math.max(maxFreeBytes, maxRatio * this.#receivedBytes))
        throw new CodingError('CODING_TOO_LARGE');
      yield piece;
    }
  }

  /** Fills the queue. Never rejects. */
  async #decode(body: AsyncIterable<Uint8Array>): Promise<void> {
    let fault: UpstreamFault | null = null;
    try {
      for await (const piece of body) {
        this.#queue.push(piece);
        while (this.#isQueuePaused && !this.#isOver) await this.#changed();
        if (this.#isOver || this.#queue.isReleased) break;
      }
    } catch (error) {
      const code = error instanceof CodingError ? error.code : 'CODING_BROKEN';
      fault = { kind: 'fault', fault: code === 'CODING_CUT' ? 'cut_coding' : 'undecodable', code };
    }
    this.#dropRest();
    // A connection that broke is why the compressed data end too early.
    if (this.#end !== undefined) this.#queue.finish(this.#end ?? fault);
    else if (fault !== null) this.#queue.stop(fault);
  }

  /** Lets the connection end the body, which may be used again then: nothing of it is decoded any more. */
  #dropRest(): void {
    this.#isOver = true;
    this.#chunks = [];
    this.#resumeConnection();
  }

  #resumeConnection(): void {
    if (!this.#isConnectionPaused) return;
    this.#isConnectionPaused = false;
    if (this.#end === undefined) this.#connection.resume();
  }

  #changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

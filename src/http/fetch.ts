import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Writable } from 'node:stream';
import type { NodeHandler } from './standalone.ts';

/**
 * Answers a request of the Fetch API without a socket. Resolves with the head of the answer. The client has left when
 * the request's signal is raised or the answer's body is cancelled; before the head, the signal's reason rejects.
 */
export async function answerFetch(source: Request, serve: NodeHandler): Promise<Response> {
  const { signal } = source;
  signal.throwIfAborted();
  const request = new FetchRequest(source);
  // The routes see by the state of the request that its body was consumed before them.
  if (request.isBodyTaken) await once(request.resume(), 'end');
  const response = new FetchResponse(request);
  const leave = (): void => void response.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  signal.addEventListener('abort', leave);
  response.once('close', () => {
    signal.removeEventListener('abort', leave);
    request.destroy();
  });
  serve(request, response as unknown as ServerResponse);
  try {
    return await response.opened;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/** A `Request` of the Fetch API as Node's HTTP server would show it. Its body is read only as far as it is needed. */
class FetchRequest extends IncomingMessage {
  /** Whether the body was read, or is being read, by someone else. */
  readonly isBodyTaken: boolean;
  #isReading = false;
  readonly #body: ReadableStreamDefaultReader<Uint8Array> | null;

  constructor({ method, url, headers, body, bodyUsed }: Request) {
    super(new Socket());
    const { pathname, search } = new URL(url);
    this.method = method;
    this.url = pathname + search;
    this.headers = Object.fromEntries(headers);
    // An upstream would wait for a body that its head announces and that is not there.
    if (body === null) for (const name of ['content-length', 'transfer-encoding']) delete this.headers[name];
    // A body without a length is framed as Node's server would have received it.
    if (body !== null && !headers.has('content-length')) this.headers['transfer-encoding'] = 'chunked';
    this.rawHeaders = Object.entries(this.headers).flat() as string[];
    // What becomes of a body that is not read to its end is the host's concern, which has the connection.
    this.complete = true;
    this.isBodyTaken = bodyUsed || body?.locked === true;
    this.#body = body === null || this.isBodyTaken ? null : body.getReader();
  }

  override _read(): void {
    if (this.#body === null) this.push(null);
    else if (!this.#isReading) void this.#readOn(this.#body);
  }

  /** Reads until the body ends or no more is wanted. Node asks an `IncomingMessage` for more only after a pause. */
  async #readOn(body: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    this.#isReading = true;
    try {
      let isMoreWanted = true;
      while (isMoreWanted) {
        const { done, value } = await body.read();
        isMoreWanted = this.push(done ? null : value);
      }
    } catch {
      this.destroy();
    }
    this.#isReading = false;
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    void this.#cancelBody();
    callback(error);
  }

  /** Stops reading the body; one that broke off has nothing to stop. */
  async #cancelBody(): Promise<void> {
    await this.#body?.cancel().catch(() => {});
  }
}

/** How many bytes of an answer wait for its reader before the upstream is paused. */
const maxWaitingBytes = 65_536;

/** Statuses of answers that have no body. */
const bodilessStatuses = new Set([204, 205, 304]);

/** The highest status that a `Response` can have; a passthrough answer may have a higher one. */
const maxStatus = 599;

/** Headers of a `ServerResponse`, as the routes set them. */
type HeaderValues = Readonly<Record<string, string | number | readonly string[] | undefined>>;

type Written = (error?: Error | null) => void;

/**
 * The part of Node's `ServerResponse` that the routes use, over a `Response` of the Fetch API. Before the end, a write is
 * done when the reader of the body has taken its bytes: so a reader that stops pauses the upstream, and nothing that was
 * written is lost when the answer is torn down behind it. An answer that breaks off is an error of the body, never its
 * end.
 */
class FetchResponse extends Writable {
  readonly req: IncomingMessage;
  /** Resolves with the head of the answer; rejects if the answer broke off before it. */
  readonly opened: Promise<Response>;
  statusCode = 200;
  headersSent = false;
  readonly #headers = new Headers();
  readonly #opening = Promise.withResolvers<Response>();
  #isOpen = false;
  #body: ReadableStreamDefaultController<Uint8Array> | null = null;
  #isPulled = false;
  /** Hands the bytes that wait to the reader. */
  #deliverWaiting: (() => void) | null = null;
  #readBytes = 0;

  constructor(request: IncomingMessage) {
    super({ highWaterMark: maxWaitingBytes });
    this.req = request;
    this.opened = this.#opening.promise;
    // A write after the reader left is an error of the stream, which would end the process without a listener.
    this.on('error', () => {});
  }

  /** Itself: it counts what is written and read, as a socket does. */
  get socket(): this {
    return this;
  }

  /** The bytes written, of which `writableLength` are not read yet. */
  get bytesWritten(): number {
    return this.#readBytes + this.writableLength;
  }

  setHeader(name: string, value: string | number | readonly string[]): this {
    this.#headers.set(name, String(value));
    return this;
  }

  appendHeader(name: string, value: string): this {
    this.#headers.append(name, value);
    return this;
  }

  writeHead(status: number, headers: HeaderValues = {}): this {
    this.statusCode = status;
    for (const [name, value] of Object.entries(headers))
      if (value !== undefined) this.#headers.set(name, String(value));
    this.headersSent = true;
    return this;
  }

  /** Sends the head before the first bytes of the body. */
  flushHeaders(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.headersSent = true;
    const status = Math.min(this.statusCode, maxStatus);
    const isBodiless = this.req.method === 'HEAD' || bodilessStatuses.has(status);
    const body = isBodiless ? null : this.#createBody();
    this.#opening.resolve(new Response(body, { status, headers: this.#headers }));
  }

  /** Ends the answer without a wait for its reader, as a socket would: an ended body keeps what is queued. */
  override end(...last: readonly unknown[]): this {
    super.end(...(last as []));
    this.#deliverWaiting?.();
    return this;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, written: Written): void {
    this.#deliver(chunk, written);
  }

  override _writev(chunks: { readonly chunk: Buffer }[], written: Written): void {
    this.#deliver(Buffer.concat(chunks.map(({ chunk }) => chunk)), written);
  }

  override _final(finished: Written): void {
    this.flushHeaders();
    this.#body?.close();
    finished();
  }

  /** An error is the reason of a client that left; the gateway breaks off without one. */
  override _destroy(reason: Error | null, destroyed: Written): void {
    this.#deliverWaiting = null;
    if (!this.writableFinished) {
      const broken = reason ?? new Error('The answer broke off before its end.');
      this.#body?.error(broken);
      if (!this.#isOpen) this.#opening.reject(broken);
    }
    destroyed();
  }

  #createBody(): ReadableStream<Uint8Array> {
    // Without a queue of its own: an error discards what is queued, such as the frame that explains it.
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => void (this.#body = controller),
        pull: () => {
          this.#isPulled = true;
          this.#deliverWaiting?.();
        },
        cancel: () => void this.destroy(),
      },
      { highWaterMark: 0 },
    );
  }

  #deliver(bytes: Buffer, written: Written): void {
    this.flushHeaders();
    const body = this.#body;
    if (body === null) return written();
    this.#deliverWaiting = () => {
      this.#deliverWaiting = null;
      this.#isPulled = false;
      this.#readBytes += bytes.length;
      // A copy, because the reader may transfer its memory, and Node keeps several buffers in one piece of memory.
      body.enqueue(new Uint8Array(bytes));
      written();
    };
    if (this.#isPulled || this.writableEnded) this.#deliverWaiting();
  }
}

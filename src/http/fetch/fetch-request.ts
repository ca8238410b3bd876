import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';

/** A `Request` of the Fetch API as Node's HTTP server would show it. Its body is read only as far as it is needed. */
export class FetchRequest extends IncomingMessage {
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

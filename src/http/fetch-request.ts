import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';

/** A `Request` of the Fetch API as Node's HTTP server would show it. Its body is read only as far as it is needed. */
export class FetchRequest extends IncomingMessage {
  readonly #body: ReadableStreamDefaultReader<Uint8Array> | null;

  constructor({ method, url, headers, body, bodyUsed }: Request) {
    super(new Socket());
    const { pathname, search } = new URL(url);
    this.method = method;
    this.url = pathname + search;
    this.rawHeaders = [...headers].flat();
    // A body without a length is framed as Node's server would have received it.
    if (body !== null && !headers.has('content-length') && !headers.has('transfer-encoding'))
      this.rawHeaders.push('transfer-encoding', 'chunked');
    // What becomes of a body that is not read to its end is the host's concern, which has the connection.
    this.complete = true;
    this.#body = body === null || bodyUsed ? null : body.getReader();
  }

  override _read(): void {
    if (this.#body === null) return void this.push(null);
    this.#body.read().then(
      ({ done, value }) => this.push(done ? null : value),
      () => this.destroy(),
    );
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

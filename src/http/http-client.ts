import type { IncomingMessage, ServerResponse } from 'node:http';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Clock } from '../domain/ports.ts';
import type { ClientConnection } from '../pipeline/exchange.ts';
import { isOversized, readJsonBody } from './body.ts';

/** How long a client may leave written bytes unread, in milliseconds. */
const maxUnreadMs = 30_000;

/** Headers of which Node keeps the first and drops the rest, where the two could disagree. */
const singleHeaders = ['authorization', 'content-type'] as const;

/** The client's end of one HTTP request, as the pipeline uses it. */
export class HttpClient implements ClientConnection {
  readonly headFault: Refusal | null;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #maxBodyBytes: number;
  readonly #clock: Clock;

  constructor(request: IncomingMessage, response: ServerResponse, maxBodyBytes: number, clock: Clock) {
    this.#request = request;
    this.#response = response;
    this.#maxBodyBytes = maxBodyBytes;
    this.#clock = clock;
    this.headFault = findDuplicateHeader(request);
    response.on('error', () => {});
  }

  get authorization(): string | undefined {
    return this.#request.headers.authorization;
  }

  readBody(): Promise<Uint8Array | Refusal> {
    return readJsonBody(this.#request, this.#maxBodyBytes);
  }

  /** The response's `close` tells that the client left; the request's comes when its body is read. */
  onGone(callback: () => void): void {
    this.#response.on('close', () => {
      if (!this.#response.writableFinished) callback();
    });
  }

  answer(status: number, headers: Readonly<Record<string, string>>, body: string): Promise<void> {
    const closing =
      status === 413 || isOversized(this.#request, this.#maxBodyBytes) ? { connection: 'close' } : {};
    this.#response.writeHead(status, { ...headers, ...closing, 'content-length': Buffer.byteLength(body) });
    this.#response.end(body);
    return this.#sent();
  }

  open(headers: Readonly<Record<string, string>>): void {
    this.#response.writeHead(200, headers);
  }

  send(text: string): Promise<void> | undefined {
    if (text === '' || this.#response.destroyed) return undefined;
    return this.#response.write(text) ? undefined : this.#writable();
  }

  end(text: string): Promise<void> {
    this.#response.end(text);
    return this.#sent();
  }

  tearDown(text: string): Promise<void> {
    const response = this.#response;
    if (text === '' || response.destroyed) response.destroy();
    else response.write(text, () => response.destroy());
    return this.#sent();
  }

  /** Resolves when the client has taken in what was written, or is gone. */
  #writable(): Promise<void> {
    return this.#firstOf('drain');
  }

  /** Resolves when the last byte is out, or the connection is gone. */
  async #sent(): Promise<void> {
    if (!this.#response.writableFinished && !this.#response.destroyed) await this.#firstOf('finish');
  }

  /** Waits for an event or for the connection's end, one of which always comes: an idle reader is cut off. */
  #firstOf(event: 'drain' | 'finish'): Promise<void> {
    const response = this.#response;
    return new Promise((resolve) => {
      const cancel = this.#clock.schedule(maxUnreadMs, () => response.destroy());
      const done = (): void => {
        cancel();
        response.off(event, done);
        response.off('close', done);
        resolve();
      };
      response.on(event, done);
      response.on('close', done);
    });
  }
}

/** Two different credentials in one request must not depend on which of them a parser prefers. */
export function findDuplicateHeader({ rawHeaders }: IncomingMessage): Refusal | null {
  for (const name of singleHeaders) {
    const times = rawHeaders.filter((raw, index) => index % 2 === 0 && raw.toLowerCase() === name).length;
    if (times > 1)
      return refuse('duplicate_header', `The header '${name}' was sent ${times} times. Send it once.`);
  }
  return null;
}

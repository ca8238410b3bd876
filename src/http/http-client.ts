import type { IncomingMessage, ServerResponse } from 'node:http';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Clock, RequestHead } from '../domain/ports.ts';
import type { AnswerHead, ClientConnection } from '../pipeline/client-connection.ts';
import { answerHeaders } from './answer-headers.ts';
import { isOversized, readBody } from './body.ts';

/** How long a client may leave written bytes unread, in milliseconds. */
const maxUnreadMs = 30_000;

/** Headers of which Node keeps the first and drops the rest, where the two could disagree. */
const singleHeaders = ['authorization', 'content-type'] as const;

/** A request as Express hands it to a route. */
type RoutedRequest = IncomingMessage & { readonly route?: { readonly path: string } };

/** The client's end of one HTTP request, as the pipeline uses it. */
export class HttpClient implements ClientConnection {
  readonly id: string;
  readonly headFault: Refusal | null;
  readonly #request: RoutedRequest;
  readonly #response: ServerResponse;
  readonly #maxBodyBytes: number;
  readonly #clock: Clock;

  constructor(
    id: string,
    request: RoutedRequest,
    response: ServerResponse,
    maxBodyBytes: number,
    clock: Clock,
  ) {
    this.id = id;
    this.#request = request;
    this.#response = response;
    this.#maxBodyBytes = maxBodyBytes;
    this.#clock = clock;
    this.headFault = findDuplicateHeader(request);
    response.on('error', () => {});
  }

  get head(): RequestHead {
    const { method = '', headers, route } = this.#request;
    const { traceparent, tracestate } = headers;
    return {
      method,
      route: route?.path ?? '',
      trace: {
        ...(typeof traceparent === 'string' ? { traceparent } : {}),
        ...(typeof tracestate === 'string' ? { tracestate } : {}),
      },
    };
  }

  get authorization(): string | undefined {
    return this.#request.headers.authorization;
  }

  readBody(): Promise<Uint8Array | Refusal> {
    return readBody(this.#request, this.#response, this.#maxBodyBytes);
  }

  /**
   * The response's `close` tells that the client left; the request's comes when its body is read. Behind slow
   * middleware of a surrounding app it may have come before we were asked.
   */
  onGone(callback: () => void): void {
    const response = this.#response;
    if (response.destroyed) return callback();
    response.on('close', () => {
      if (!response.writableFinished) callback();
    });
  }

  answer(head: AnswerHead, body: string): Promise<void> {
    const closing =
      head.status === 413 || isOversized(this.#request, this.#maxBodyBytes) ? { connection: 'close' } : {};
    const length = { 'content-length': Buffer.byteLength(body) };
    this.#response.writeHead(head.status, { ...answerHeaders(head), ...closing, ...length });
    this.#response.end(body);
    return this.#sent();
  }

  open(head: AnswerHead): void {
    this.#response.writeHead(head.status, answerHeaders(head));
  }

  send(text: string, signal: AbortSignal): Promise<void> | undefined {
    if (text === '' || this.#response.destroyed) return undefined;
    return this.#response.write(text) ? undefined : this.#firstOf('drain', signal);
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

  /** Resolves when the last byte is out, or the connection is gone. */
  async #sent(): Promise<void> {
    if (!this.#response.writableFinished && !this.#response.destroyed) await this.#firstOf('finish');
  }

  /** Waits for an event, the signal or the connection's end; a client that takes nothing in is cut off. */
  #firstOf(event: 'drain' | 'finish', signal?: AbortSignal): Promise<void> {
    const response = this.#response;
    return new Promise((resolve) => {
      const cancel = this.#watchProgress();
      const done = (): void => {
        cancel();
        response.off(event, done);
        response.off('close', done);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      response.on(event, done);
      response.on('close', done);
      signal?.addEventListener('abort', done);
      if (signal?.aborted) done();
    });
  }

  /** Looks now and then whether the client took anything in; one that did gets the time once more. */
  #watchProgress(): () => void {
    const response = this.#response;
    const unread = (): number => response.socket?.writableLength ?? 0;
    let before = unread();
    const look = (): void => {
      const now = unread();
      if (now >= before) return void response.destroy();
      before = now;
      cancel = this.#clock.schedule(maxUnreadMs, look);
    };
    let cancel = this.#clock.schedule(maxUnreadMs, look);
    return () => cancel();
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

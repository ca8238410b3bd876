import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import type { KeyDirectory } from '../domain/ports/key-store.ts';
import type { RequestHead } from '../domain/ports/telemetry.ts';
import { authenticateAt } from '../pipeline/admission/authenticate.ts';
import type { AnswerHead, ClientConnection } from '../pipeline/client-connection.ts';
import { tagHeader } from '../pipeline/admission/admit.ts';
import { claimHeader, placeHeader } from '../pipeline/claims/claim-refusals.ts';
import { answerHeaders } from './answers/answer-headers.ts';
import { arrivedBytes, readBody } from './body.ts';
import type { ClientAddresses } from './heads/client-addresses.ts';
import { connectionOf } from './connections/connection.ts';
import {
  announceClose,
  isBodyIncomplete,
  lingerAfter,
  whenChunkIsRead,
} from './connections/lingering-close.ts';
import { findDuplicateHeader } from './heads/duplicate-header.ts';
import { OwnResponse } from './answers/own-response.ts';
import { requestIdOf } from './heads/request-id.ts';
import { StreamOutput } from './answers/stream-output.ts';

/** Errors of an answer are those of its connection, whose end is seen by its `close`. */
const ignoreError = (): void => {};

/** What the config in force says of the requests of clients. */
export interface ClientSettings {
  readonly maxBodyBytes: number;
  readonly addresses: ClientAddresses;
}

/**
 * The client's side of one HTTP request, which the pipeline uses as its `ClientConnection`. A `Connection` is the TCP
 * connection below it, which may carry many requests.
 */
export class HttpClientConnection implements ClientConnection {
  readonly id: string;
  readonly headFault: Refusal | null;
  readonly loggedAddress: string | null;
  readonly triedKeyId: string | null;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #route: string;
  readonly #output: StreamOutput;
  readonly #settings: ClientSettings;

  /**
   * `route` is the path of the matched route; with `isFast`, the parts of streams take the fast path to the socket.
   * `triedKeyId` is the key that an operator tries out, behind the guard of the operators' routes.
   */
  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    route: string,
    settings: ClientSettings,
    isFast: boolean,
    triedKeyId: string | null = null,
  ) {
    this.id = requestIdOf(response);
    this.triedKeyId = triedKeyId;
    this.#request = request;
    this.#response = response;
    this.#route = route;
    this.#output = new StreamOutput(response, isFast && connectionOf(request.socket) !== undefined);
    this.#settings = settings;
    // Read at once: its connection may be closed when the request is logged.
    this.loggedAddress = settings.addresses.areLogged ? settings.addresses.of(request) : null;
    this.headFault = findDuplicateHeader(request);
    response.on('error', ignoreError);
  }

  get head(): RequestHead {
    const { method = '', headers } = this.#request;
    return { method, route: this.#route, trace: readTrace(headers) };
  }

  get authorization(): string | undefined {
    return this.#request.headers.authorization;
  }

  get tag(): string | undefined {
    // No tag has a comma.
    return sentOnce(this.#request.headers[tagHeader]);
  }

  get claim(): string | undefined {
    // A request for a try-out is the operator's own.
    return this.triedKeyId === null ? sentOnce(this.#request.headers[claimHeader]) : undefined;
  }

  get retryCount(): string | undefined {
    return sentOnce(this.#request.headers['x-stainless-retry-count']);
  }

  get lastEventId(): string | undefined {
    return sentOnce(this.#request.headers[placeHeader]);
  }

  get otherKeyHeader(): string | null {
    return findOtherKeyHeader(this.#request);
  }

  get address(): string {
    return this.#settings.addresses.of(this.#request);
  }

  get maxCost(): string | undefined {
    return sentOnce(this.#request.headers['x-textgate-max-cost']);
  }

  recognize(): void {
    connectionOf(this.#request.socket)?.recognize();
  }

  get arrivedBytes(): number {
    return arrivedBytes(this.#request);
  }

  readBody(): Promise<Uint8Array | Refusal> {
    return readBody(this.#request, this.#response, this.#settings.maxBodyBytes);
  }

  /**
   * Calls back when the client disconnects. That is the response's `close`; the request's comes when its body is read.
   * Behind slow middleware of a surrounding app the client may be gone already.
   */
  onGone(callback: () => void): void {
    const response = this.#response;
    if (response.destroyed) return callback();
    response.on('close', () => {
      if (!response.writableFinished) callback();
    });
  }

  onHalfClosed(callback: () => void): void {
    if (this.#response instanceof OwnResponse) this.#response.onHalfClosed = callback;
  }

  async answer(head: AnswerHead, body: string): Promise<void> {
    const headers = answerHeaders(head);
    const bytes = Buffer.byteLength(body);
    headers['content-length'] = String(bytes);
    if (isBodyIncomplete(this.#request))
      await new Promise<void>((resolve) => whenChunkIsRead(this.#response, resolve));
    announceClose(this.#response);
    this.#response.writeHead(head.status, headers);
    lingerAfter(this.#response);
    // ASCII is the same in both encodings, and cheaper as the first.
    this.#response.end(body, bytes === body.length ? 'latin1' : 'utf8');
    return this.#sent();
  }

  open(head: AnswerHead): void {
    this.#response.writeHead(head.status, answerHeaders(head));
  }

  send(text: string, signal: AbortSignal): Promise<void> | undefined {
    if (text === '' || this.#response.destroyed) return undefined;
    const full = this.#output.write(text);
    return full === null ? undefined : this.#firstOf('drain', full, signal);
  }

  end(text: string): Promise<void> {
    lingerAfter(this.#response);
    this.#response.end(text);
    return this.#sent();
  }

  tearDown(text: string): Promise<void> {
    const response = this.#response;
    if (text === '' || response.destroyed) response.destroy();
    else response.write(text, () => response.destroy());
    return this.#sent();
  }

  /** Resolves when the last byte is sent, or the connection is closed. */
  async #sent(): Promise<void> {
    if (!this.#response.writableFinished && !this.#response.destroyed)
      await this.#firstOf('finish', this.#response);
  }

  /** Waits for an event, the signal or the end of the connection: the unread watch closes it when a client stalls. */
  #firstOf(event: 'drain' | 'finish', emitter: Writable, signal?: AbortSignal): Promise<void> {
    const response = this.#response;
    return new Promise((resolve) => {
      const done = (): void => {
        emitter.off(event, done);
        response.off('close', done);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      emitter.on(event, done);
      response.on('close', done);
      signal?.addEventListener('abort', done);
      if (signal?.aborted) done();
    });
  }
}

/** A header that is to be sent once: Node joins the values of one that was sent more often. */
function sentOnce(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : header?.join();
}

const noTrace: RequestHead['trace'] = {};

/** The trace that a client's request belongs to. */
function readTrace({ traceparent, tracestate }: IncomingHttpHeaders): RequestHead['trace'] {
  if (traceparent === undefined && tracestate === undefined) return noTrace;
  return {
    ...(typeof traceparent === 'string' ? { traceparent } : {}),
    ...(typeof tracestate === 'string' ? { tracestate } : {}),
  };
}

/** Authenticates a request outside the pipeline, and marks its connection as a client's. */
export async function authenticateRequest(
  request: IncomingMessage,
  { keys, addresses }: { readonly keys: KeyDirectory; readonly addresses: ClientAddresses },
): Promise<ApiKey | Refusal> {
  const credentials = {
    triedKeyId: null,
    authorization: request.headers.authorization,
    otherKeyHeader: findOtherKeyHeader(request),
    get address() {
      return addresses.of(request);
    },
  };
  const key = findDuplicateHeader(request) ?? (await authenticateAt(credentials, keys));
  if (!isRefusal(key)) connectionOf(request.socket)?.recognize();
  return key;
}

/** Headers in which clients of Anthropic, Azure and Google send keys. */
const otherKeyHeaders = ['x-api-key', 'api-key', 'x-goog-api-key'] as const;

function findOtherKeyHeader({ headers }: IncomingMessage): string | null {
  return otherKeyHeaders.find((name) => headers[name] !== undefined) ?? null;
}

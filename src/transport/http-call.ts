import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Clock } from '../domain/ports/clock.ts';
import type { Forwarding, UpstreamAnswer, UpstreamFault } from '../domain/ports/upstreams.ts';
import type { CodingFault } from '../domain/diagnosis/fault-explanations.ts';
import { interimOverflow } from '../domain/diagnosis/fault-explanations.ts';
import type { ConnectionFault } from '../protocol/text.ts';
import { readLimitHeaders } from '../protocol/upstream/limit-headers.ts';
import { readRetryAfter } from '../protocol/upstream/retry-after.ts';
import { BodyQueue, QueuedAnswer } from './body-queue.ts';
import type { AfterRead, Deadlines } from './body-queue.ts';
import { BodyDecoder } from './codings/body-decoder.ts';
import { decodersOf, looksCompressed } from './codings/content-codings.ts';
import type { ConnectionUser, UpstreamConnection } from './connections.ts';
import { describeError } from './describe-error.ts';

/** How long after a call was sent an answer may still be one to an idle connection, in milliseconds. */
const maxCrossingMs = 1_000;

/** What a call depends on beside its request. */
interface CallTerms {
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  readonly afterRead: AfterRead;
  readonly signal: AbortSignal;
  readonly onSent: (() => void) | undefined;
  /** How the call is sent to a proxy that reads it, and may answer it itself; `null` where none does. */
  readonly forwarding: Forwarding | null;
  /** Whether the limits that the answer reports are read. */
  readonly learnsLimits: boolean;
  /** Whether the body is decoded, because it is read. */
  readonly decodes: boolean;
}

/** Feeds the response to one dispatched request into a body queue, and resolves with the answer when its head arrives. */
export class HttpCall implements Dispatcher.DispatchHandler, ConnectionUser {
  readonly #resolve: (answer: UpstreamAnswer | UpstreamFault) => void;
  readonly #terms: CallTerms;
  readonly #queue: BodyQueue;
  #contentEncoding: string | readonly string[] | undefined;
  /** What takes the body, from its first chunk on. */
  #body: BodyDecoder | BodyQueue | null = null;
  /** Whether the call has a connection that was made. */
  #isStarted = false;
  #startedMs = 0;
  #answered = false;
  #connection: UpstreamConnection | null = null;
  /** The connection's received bytes when the call was sent on it; `null` if it was opened for this call. */
  #receivedBytesBefore: number | null = null;

  constructor(resolve: (answer: UpstreamAnswer | UpstreamFault) => void, terms: CallTerms) {
    const { clock, deadlines, afterRead, signal } = terms;
    const interrupt = (): void => this.#queue.stop({ kind: 'fault', fault: 'interrupted' });
    signal.addEventListener('abort', interrupt, { once: true });
    this.#resolve = resolve;
    this.#terms = terms;
    this.#queue = new BodyQueue(clock, deadlines, afterRead, () => {
      signal.removeEventListener('abort', interrupt);
      const { fault } = this.#queue;
      if (fault !== null) this.#resolve(fault);
    });
  }

  useConnection(connection: UpstreamConnection): void {
    this.#connection = connection;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#isStarted = true;
    this.#startedMs = this.#terms.clock.monotonicMs();
    this.#receivedBytesBefore = this.#connection?.takeOver() ?? null;
    this.#queue.attach(controller);
  }

  onRequestSent(): void {
    this.#terms.onSent?.();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) return;
    const refusal = this.#terms.forwarding?.faultOf(status) ?? null;
    if (refusal !== null) return this.#queue.stop(refusal);
    if (status === 408 && closes(headers) && this.#mayHaveCrossed)
      return this.#queue.stop({ kind: 'fault', fault: 'stale', code: 'UND_ERR_SOCKET' });
    const contentType = (firstValue(headers['content-type']) ?? '').toLowerCase();
    const valueOf = (name: string): string | undefined => firstValue(headers[name]);
    const limits = this.#terms.learnsLimits
      ? readLimitHeaders((name) => valueOf(name) ?? this.#ownDate(name))
      : null;
    this.#contentEncoding = headers['content-encoding'];
    this.#answered = true;
    this.#resolve(
      new QueuedAnswer({ status, contentType, retryAfterMs: readRetryAfter(valueOf), limits }, this.#queue),
    );
  }

  /** Our own clock, for an answer without a `date`: a reset that is a moment, 2 s from now, would else be one of a minute. */
  #ownDate(name: string): string | undefined {
    return name === 'date' ? new Date(this.#terms.clock.now()).toISOString() : undefined;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    (this.#body ??= this.#begin(controller, chunk)).push(chunk);
  }

  /** Finds out, at the first chunk, whether the body has to be decoded: an answer without one may name any coding. */
  #begin(connection: Dispatcher.DispatchController, chunk: Uint8Array): BodyDecoder | BodyQueue {
    if (!this.#terms.decodes) return this.#queue;
    const decoders = decodersOf(this.#contentEncoding);
    if (decoders !== null && decoders.length > 0) return new BodyDecoder(decoders, this.#queue, connection);
    const code: CodingFault | null =
      decoders === null ? 'CODING_UNKNOWN' : looksCompressed(chunk) ? 'CODING_UNLABELLED' : null;
    if (code !== null) this.#queue.stop({ kind: 'fault', fault: 'undecodable', code });
    return this.#queue;
  }

  onResponseEnd(): void {
    (this.#body ?? this.#queue).finish(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const described = describeError(error);
    const fault = headOverflows.has(described.code) ? 'oversized_head' : this.#faultKind(described.code);
    (this.#body ?? this.#queue).finish({ kind: 'fault', fault, ...described });
  }

  /** Whether the connection has carried other calls. */
  get #isReused(): boolean {
    return this.#receivedBytesBefore !== null;
  }

  /**
   * Whether a 408 that closes the connection may have been sent before its server saw this call: a server that ends an idle
   * connection may say so (RFC 9110, 15.5.9). A later one is of a server that read the call, and may have charged for it.
   */
  get #mayHaveCrossed(): boolean {
    return this.#isReused && this.#terms.clock.monotonicMs() - this.#startedMs < maxCrossingMs;
  }

  /**
   * A reused connection that the upstream closed without a byte is stale, which says nothing about the upstream; one that was
   * opened for the call, or had been answered in part, shows that the upstream can be reached.
   */
  #faultKind(code: string): ConnectionFault {
    if (this.#answered) return 'broken';
    if (this.#isReused && this.#connection?.receivedBytes === this.#receivedBytesBefore) return 'stale';
    return this.#isStarted && closedCodes.has(code) ? 'unanswered' : 'unreachable';
  }
}

/** Whether an answer is the last one of its connection. */
function closes({ connection }: IncomingHttpHeaders): boolean {
  return /(?:^|,)\s*close\s*(?:,|$)/i.test(connection ?? '');
}

/** The codes of a connection that was closed. */
const closedCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** The codes of a head that is too large, of undici's own check and of the parser, and of interim ones that are. */
const headOverflows: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'HPE_HEADER_OVERFLOW',
  interimOverflow,
]);

/** The first value of a header: Node gives a repeated header as a list, in spite of its types. */
function firstValue(header: string | readonly string[] | undefined): string | undefined {
  return Array.isArray(header) ? String(header[0]) : (header as string | undefined);
}

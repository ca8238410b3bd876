import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Forwarding, UpstreamFault } from '../../domain/ports/upstreams.ts';
import type { PassedHead } from '../../pipeline/run-passthrough.ts';
import { withheldStatuses } from '../../protocol/upstream/classify-error.ts';
import { readRetryAfter } from '../../protocol/upstream/retry-after.ts';
import type { Refusal } from '../../shared/errors.ts';
import { noStore } from '../answers/answer-headers.ts';
import { incomplete, tooLarge } from '../body.ts';
import { announceClose } from '../connections/lingering-close.ts';

/** The limits of a passthrough call. */
export interface PassthroughLimits {
  /** From the request to the head of its answer. */
  readonly firstByteMs: number;
  /** Between two pieces of the answer. */
  readonly idleMs: number;
  /** From the request to the end of its answer. */
  readonly totalMs: number;
  readonly maxBodyBytes: number;
}

/** The result of a passthrough call: the status of its answer, or its fault. */
type PassthroughOutcome = number | UpstreamFault | Refusal;

/**
 * The headers of an answer that pass through. Not its length: by the length a client would take the last piece for the
 * end, before its slot is free again.
 */
const passthroughAnswerHeaders = [
  'content-type',
  'content-encoding',
  'content-language',
  'cache-control',
  'retry-after',
];

/** The parts of a passthrough call beside the client's response. */
interface PassthroughCallOptions {
  /** The headers that the upstream gets beside those of the client that pass through. */
  readonly headers: Readonly<Record<string, string>>;
  /** How the request is sent to a proxy that reads it; `null` where none does. */
  readonly forwarding: Forwarding | null;
  /** The client's body if the surrounding app has read it already; otherwise it follows from the request. */
  readonly readBody: Uint8Array | null;
  readonly limits: PassthroughLimits;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called with the status when the head of the answer is sent to the client. */
  readonly onHead: (status: number) => void;
  /** Called with what the head of every answer says; `null` where that is of no use. */
  readonly onAnswered: ((head: PassedHead) => void) | null;
  readonly resolve: (outcome: PassthroughOutcome) => void;
}

/** One passthrough request: writes the answer to the client, but leaves its end to the pipeline. */
export class PassthroughCall {
  readonly #response: ServerResponse;
  readonly #options: PassthroughCallOptions;
  readonly #cancels: (() => void)[];
  #cancelFirstByte: () => void;
  #cancelSilence: (() => void) | null = null;
  #upstream: ClientRequest | null = null;
  #answered = false;
  #over = false;

  constructor(response: ServerResponse, options: PassthroughCallOptions) {
    this.#response = response;
    this.#options = options;
    const { clock, limits, signal } = options;
    const interrupt = (): void => this.#stop({ kind: 'fault', fault: 'interrupted' });
    signal.addEventListener('abort', interrupt, { once: true });
    this.#cancelFirstByte = clock.schedule(limits.firstByteMs, () =>
      this.#stop({ kind: 'fault', fault: 'first_byte_timeout' }),
    );
    this.#cancels = [
      () => signal.removeEventListener('abort', interrupt),
      clock.schedule(limits.totalMs, () => this.#stop({ kind: 'fault', fault: 'total_timeout' })),
    ];
    if (signal.aborted) interrupt();
  }

  /** Called when the request has a connection and its body follows. */
  sent(upstream: ClientRequest, body: IncomingMessage): void {
    this.#upstream = upstream;
    if (this.#over) return void upstream.destroy();
    const { forwarding, headers, readBody } = this.#options;
    if (forwarding !== null) upstream.path = forwarding.origin + upstream.path;
    for (const [name, value] of Object.entries({ ...headers, ...forwarding?.headers }))
      upstream.setHeader(name, value);
    this.#watchForNoAnswer(upstream);
    if (readBody === null) this.#watchBody(body);
    else upstream.write(readBody);
  }

  /**
   * Counts the size of a chunked body on the way. One that breaks off ends the call: the upstream would wait for the rest
   * until its deadline, which would count as the upstream's silence.
   */
  #watchBody(body: IncomingMessage): void {
    const { maxBodyBytes } = this.#options.limits;
    let size = 0;
    body.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBodyBytes) this.#stop(tooLarge(maxBodyBytes));
    });
    const closed = (): void => {
      if (!body.readableEnded) this.#stop(incomplete());
    };
    if (body.destroyed) closed();
    else body.once('close', closed);
  }

  /** Ends the call when the upstream switches protocols or closes without an answer: waiting would hold the slot. */
  #watchForNoAnswer(upstream: ClientRequest): void {
    const switched = (): void => {
      this.failed(new Error('invalid response status 101'));
      upstream.destroy();
    };
    upstream.on('upgrade', (_answer: IncomingMessage, socket: Socket) => {
      socket.on('error', () => {});
      socket.destroy();
      switched();
    });
    upstream.on('information', ({ statusCode }) => {
      if (statusCode === 101) switched();
    });
    upstream.on('close', () => {
      if (!this.#answered) this.failed(new Error('closed without an answer'));
    });
  }

  /** Called with the head of the answer. An answer that breaks off breaks the client's connection, too. */
  answered(answer: IncomingMessage): void {
    const status = answer.statusCode ?? 0;
    if (this.#over || status < 200 || status > 999) {
      answer.destroy();
      return this.failed(new Error(`invalid response status ${status}`));
    }
    const { forwarding, onAnswered, onHead } = this.#options;
    onAnswered?.(passedHeadOf(answer, status));
    const refusal = forwarding?.faultOf(status) ?? null;
    if (refusal !== null) return this.#withhold(answer, refusal);
    if (withheldStatuses.has(status)) return this.#withhold(answer, status);
    this.#answered = true;
    this.#cancelFirstByte();
    onHead(status);
    const kept = passthroughAnswerHeaders.filter((name) => answer.headers[name] !== undefined);
    announceClose(this.#response);
    this.#response.writeHead(status, {
      ...noStore,
      ...Object.fromEntries(kept.map((name) => [name, answer.headers[name]])),
    });
    // For a client, the head of an answer without a body is its end, which must wait for the settlement.
    if (hasBody(answer)) this.#response.flushHeaders();
    this.#watchSilence(answer);
    pipeline(answer, this.#response, { end: false }).then(
      () => this.#end(status),
      (error: unknown) => this.failed(error),
    );
  }

  /**
   * Ends the call with an answer that the client does not get. Its connection is closed once the client has ours: the
   * middleware would close that of the client, too, before it has anything.
   */
  #withhold(answer: IncomingMessage, outcome: PassthroughOutcome): void {
    this.#answered = true;
    answer.on('error', () => {});
    this.#response.once('close', () => answer.destroy());
    this.#end(outcome);
  }

  /** Silence counts only while the client reads: a slow client makes the upstream wait. */
  #watchSilence(answer: IncomingMessage): void {
    const { clock, limits } = this.#options;
    let lastMs = clock.monotonicMs();
    answer.on('data', () => (lastMs = clock.monotonicMs()));
    const check = (): void => {
      if (this.#response.writableNeedDrain) lastMs = clock.monotonicMs();
      const leftMs = lastMs + limits.idleMs - clock.monotonicMs();
      if (leftMs <= 0) return this.#stop({ kind: 'fault', fault: 'idle_timeout' });
      this.#cancelSilence = clock.schedule(leftMs, check);
    };
    check();
  }

  /** Called when the call failed: before the head of the answer, or within its body. */
  failed(error: unknown): void {
    const cause = error instanceof Error ? error.message : String(error);
    this.#end({ kind: 'fault', fault: this.#answered ? 'broken' : 'unreachable', cause });
  }

  #stop(outcome: PassthroughOutcome): void {
    this.#end(outcome);
    this.#upstream?.destroy();
  }

  #end(outcome: PassthroughOutcome): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelFirstByte();
    this.#cancelSilence?.();
    for (const cancel of this.#cancels) cancel();
    this.#options.resolve(outcome);
  }
}

/** What the head of an answer that is passed on says of the limits of its upstream: its status, and the pause it asks for. */
function passedHeadOf({ headers }: IncomingMessage, status: number): PassedHead {
  const retryAfterMs = readRetryAfter((name) => {
    const value = headers[name];
    return typeof value === 'string' ? value : undefined;
  });
  return { status, retryAfterMs, limits: null };
}

/** Whether the head of an answer announces a body. */
function hasBody({ statusCode, headers, req }: IncomingMessage & { readonly req?: ClientRequest }): boolean {
  const isEmpty = statusCode === 204 || statusCode === 304 || headers['content-length'] === '0';
  return !isEmpty && req?.method !== 'HEAD';
}

import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { Refusal } from '../shared/errors.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { UpstreamFault } from '../domain/ports/upstreams.ts';
import { withheldStatuses } from '../protocol/upstream/classify-error.ts';
import { tooLarge } from './body.ts';
import { announceClose } from './lingering-close.ts';

/** From the request to the head of its answer, between two pieces of it, and to its end, in milliseconds; in bytes. */
export interface PassthroughLimits {
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
  readonly maxBodyBytes: number;
}

/** How a forwarded request went: the status of its answer, or what went wrong with it. */
export type PassthroughOutcome = number | UpstreamFault | Refusal;

/**
 * All that a client gets to know of an answer beside its body. Not its length: by that it would take the last piece for
 * the end, before the slot is given back.
 */
const passedHeaders = [
  'content-type',
  'content-encoding',
  'content-language',
  'cache-control',
  'retry-after',
];

/** One request on its way through: carries the answer over to the client, and leaves its end to others. */
export class PassthroughCall {
  readonly #response: ServerResponse;
  /** What the upstream gets beside what is passed on of the client's. */
  readonly #headers: Readonly<Record<string, string>>;
  readonly #limits: PassthroughLimits;
  readonly #onHead: (status: number) => void;
  readonly #resolve: (forwarded: PassthroughOutcome) => void;
  readonly #cancels: (() => void)[];
  readonly #clock: Clock;
  #cancelFirstByte: () => void;
  #cancelSilence: (() => void) | null = null;
  #upstream: ClientRequest | null = null;
  #answered = false;
  #over = false;

  constructor(
    response: ServerResponse,
    headers: Readonly<Record<string, string>>,
    limits: PassthroughLimits,
    clock: Clock,
    signal: AbortSignal,
    onHead: (status: number) => void,
    resolve: (forwarded: PassthroughOutcome) => void,
  ) {
    this.#response = response;
    this.#headers = headers;
    this.#limits = limits;
    this.#clock = clock;
    this.#onHead = onHead;
    this.#resolve = resolve;
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

  /** The request has a connection, and its body follows: one that says nothing of its size is counted as it goes. */
  sent(upstream: ClientRequest, body: IncomingMessage): void {
    this.#upstream = upstream;
    if (this.#over) return void upstream.destroy();
    for (const [name, value] of Object.entries(this.#headers)) upstream.setHeader(name, value);
    this.#watchForNoAnswer(upstream);
    const { maxBodyBytes } = this.#limits;
    let size = 0;
    body.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBodyBytes) this.#stop(tooLarge(maxBodyBytes));
    });
  }

  /** An upstream that switches protocols, or that closes without a word, will not answer: waiting would hold the slot. */
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

  /** The head of the answer has come. An answer that breaks off breaks the client's connection as well. */
  answered(answer: IncomingMessage): void {
    const status = answer.statusCode ?? 0;
    if (this.#over || status < 200 || status > 999) {
      answer.destroy();
      return this.failed(new Error(`invalid response status ${status}`));
    }
    if (withheldStatuses.has(status)) {
      answer.destroy();
      return this.#end(status);
    }
    this.#answered = true;
    this.#cancelFirstByte();
    this.#onHead(status);
    const kept = passedHeaders.filter((name) => answer.headers[name] !== undefined);
    announceClose(this.#response);
    this.#response.writeHead(status, Object.fromEntries(kept.map((name) => [name, answer.headers[name]])));
    // A client takes the head of an answer without a body for its end, which must wait for the settlement.
    if (hasBody(answer)) this.#response.flushHeaders();
    this.#watchSilence(answer);
    pipeline(answer, this.#response, { end: false }).then(
      () => this.#end(status),
      (error: unknown) => this.failed(error),
    );
  }

  /** Silence counts only while the client takes what comes: a slow one makes the upstream wait. */
  #watchSilence(answer: IncomingMessage): void {
    let lastMs = this.#clock.monotonicMs();
    answer.on('data', () => (lastMs = this.#clock.monotonicMs()));
    const look = (): void => {
      if (this.#response.writableNeedDrain) lastMs = this.#clock.monotonicMs();
      const leftMs = lastMs + this.#limits.idleMs - this.#clock.monotonicMs();
      if (leftMs <= 0) return this.#stop({ kind: 'fault', fault: 'idle_timeout' });
      this.#cancelSilence = this.#clock.schedule(leftMs, look);
    };
    look();
  }

  failed(error: unknown): void {
    const cause = error instanceof Error ? error.message : String(error);
    this.#end({ kind: 'fault', fault: this.#answered ? 'broken' : 'unreachable', cause });
  }

  #stop(forwarded: PassthroughOutcome): void {
    this.#end(forwarded);
    this.#upstream?.destroy();
  }

  #end(forwarded: PassthroughOutcome): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelFirstByte();
    this.#cancelSilence?.();
    for (const cancel of this.#cancels) cancel();
    this.#resolve(forwarded);
  }
}

/** Whether anything follows the head of an answer, as far as the head says. */
function hasBody({ statusCode, headers, req }: IncomingMessage & { readonly req?: ClientRequest }): boolean {
  const isEmpty = statusCode === 204 || statusCode === 304 || headers['content-length'] === '0';
  return !isEmpty && req?.method !== 'HEAD';
}

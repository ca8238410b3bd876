import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Clock } from '../domain/ports/clock.ts';
import type { UpstreamAnswer, UpstreamFault } from '../domain/ports/upstreams.ts';
import { BodyQueue } from './body-queue.ts';
import type { Deadlines } from './body-queue.ts';
import type { Connection, ConnectionUser } from './connections.ts';

/** The longest wait that an upstream's `retry-after` may ask of our clients, in milliseconds. */
const maxRetryAfterMs = 600_000;

/** How much of an error's words is kept, in characters. */
const maxCauseChars = 200;

/** Feeds one dispatched request into a body queue, and gives out the answer when its head has come. */
export class HttpCall implements Dispatcher.DispatchHandler, ConnectionUser {
  readonly #resolve: (answer: UpstreamAnswer | UpstreamFault) => void;
  readonly #onSent: () => void;
  readonly #queue: BodyQueue;
  #answered = false;
  #connection: Connection | null = null;
  /** How much the connection had received when the call was sent on it; `null` if it was opened for this call. */
  #receivedBefore: number | null = null;

  constructor(
    resolve: (answer: UpstreamAnswer | UpstreamFault) => void,
    clock: Clock,
    deadlines: Deadlines,
    signal: AbortSignal,
    onSent: () => void = () => {},
  ) {
    const interrupt = (): void => this.#queue.stop({ kind: 'fault', fault: 'interrupted' });
    signal.addEventListener('abort', interrupt, { once: true });
    this.#resolve = resolve;
    this.#onSent = onSent;
    this.#queue = new BodyQueue(clock, deadlines, () => {
      signal.removeEventListener('abort', interrupt);
      const { fault } = this.#queue;
      if (fault !== null) this.#resolve(fault);
    });
  }

  useConnection(connection: Connection): void {
    this.#connection = connection;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#receivedBefore = this.#connection?.takeOver() ?? null;
    this.#queue.attach({
      pause: () => controller.pause(),
      resume: () => controller.resume(),
      abort: () => controller.abort(new Error('stopped by the gateway')),
    });
  }

  onRequestSent(): void {
    this.#onSent();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) return;
    const queue = this.#queue;
    const answer: UpstreamAnswer = {
      kind: 'answer',
      status,
      contentType: (firstValue(headers['content-type']) ?? '').toLowerCase(),
      retryAfterMs: readRetryAfter(headers),
      read: () => queue.read(),
      release: () => queue.release(),
    };
    this.#answered = true;
    this.#resolve(answer);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#queue.push(chunk);
  }

  onResponseEnd(): void {
    this.#queue.finish(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#queue.finish({ kind: 'fault', fault: this.#faultKind(), cause: describe(error) });
  }

  /** A kept connection that the other side closed just when it was used again says nothing about the upstream. */
  #faultKind(): 'broken' | 'stale' | 'unreachable' {
    if (this.#answered) return 'broken';
    const reused = this.#receivedBefore !== null;
    return reused && this.#connection?.received === this.#receivedBefore ? 'stale' : 'unreachable';
  }
}

/** A header that came twice is a list, whatever its type says. */
function firstValue(header: string | readonly string[] | undefined): string | undefined {
  return Array.isArray(header) ? String(header[0]) : (header as string | undefined);
}

/** An error's code and words: the operator's only hint at a wrong address, a certificate or a cut line. */
function describe(error: Error & { code?: string }): string {
  return `${error.code ?? error.name}: ${error.message}`.slice(0, maxCauseChars);
}

/** `retry-after-ms`, or `retry-after` in seconds; a date is not worth the clock skew. */
function readRetryAfter(headers: IncomingHttpHeaders): number | null {
  const milliseconds = Number(firstValue(headers['retry-after-ms']) ?? Number.NaN);
  const value = Number.isFinite(milliseconds)
    ? milliseconds
    : Number(firstValue(headers['retry-after']) ?? Number.NaN) * 1_000;
  return Number.isFinite(value) && value >= 0 ? Math.min(value, maxRetryAfterMs) : null;
}

import type { IncomingHttpHeaders } from 'node:http';
import { Pool } from 'undici';
import type { Dispatcher } from 'undici';
import type { Clock, UpstreamAnswer, UpstreamCall, UpstreamFault } from '../domain/ports.ts';
import { BodyQueue } from './body-queue.ts';
import type { Deadlines } from './body-queue.ts';
import type { Upstream } from './upstreams.ts';

/** The longest wait that an upstream's `retry-after` may ask of our clients, in milliseconds. */
const maxRetryAfterMs = 600_000;

/** How much of an error's words is kept, in characters. */
const maxCauseChars = 200;

export interface HttpUpstreamOptions {
  /** The base URL, version included: `https://host/v1`. */
  readonly url: URL;
  readonly apiKey: string | null;
  readonly connectMs: number;
  readonly deadlines: Deadlines;
}

/**
 * A provider behind HTTP. Headers are built from nothing but our own values, redirects are not followed, and
 * HTTP/2 stays off, because a paused reader must hold up its own stream only.
 */
export function createHttpUpstream(options: HttpUpstreamOptions, clock: Clock): Upstream {
  const { url, apiKey, deadlines } = options;
  const pool = new Pool(url.origin, {
    allowH2: false,
    connect: { timeout: options.connectMs },
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const basePath = url.pathname.replace(/\/+$/, '');
  const headers = {
    'accept-encoding': 'identity',
    'user-agent': 'textgate',
    ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
  };
  return {
    call(call, signal) {
      if (signal.aborted) return Promise.resolve({ fault: 'interrupted' });
      return new Promise((resolve) => {
        const exchange = new HttpCall(resolve, clock, deadlinesOf(call, deadlines), signal);
        pool.dispatch(
          {
            method: call.method,
            path: basePath + call.path,
            body: call.body,
            headers: {
              ...headers,
              accept: call.stream ? 'text/event-stream' : 'application/json',
              ...(call.body === null ? {} : { 'content-type': 'application/json' }),
            },
          },
          exchange,
        );
      });
    },
    close: () => pool.destroy(),
  };
}

/** A whole answer comes in one piece at the end, so its silence before that means nothing. */
function deadlinesOf(call: UpstreamCall, deadlines: Deadlines): Deadlines {
  return call.stream ? deadlines : { ...deadlines, firstByteMs: deadlines.totalMs };
}

/** Feeds one dispatched request into a body queue, and gives out the answer when its head has come. */
class HttpCall implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: UpstreamAnswer | UpstreamFault) => void;
  readonly #queue: BodyQueue;
  #answered = false;

  constructor(
    resolve: (answer: UpstreamAnswer | UpstreamFault) => void,
    clock: Clock,
    deadlines: Deadlines,
    signal: AbortSignal,
  ) {
    const interrupt = (): void => this.#queue.stop({ fault: 'interrupted' });
    signal.addEventListener('abort', interrupt, { once: true });
    this.#resolve = resolve;
    this.#queue = new BodyQueue(clock, deadlines, () => {
      signal.removeEventListener('abort', interrupt);
      const { fault } = this.#queue;
      if (fault !== null) this.#resolve(fault);
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#queue.attach({
      pause: () => controller.pause(),
      resume: () => controller.resume(),
      abort: () => controller.abort(new Error('stopped by the gateway')),
    });
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) return;
    const queue = this.#queue;
    const answer: UpstreamAnswer = {
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
    this.#queue.finish({ fault: this.#answered ? 'broken' : 'unreachable', cause: describe(error) });
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

import type { Clock } from '../domain/ports/clock.ts';
import type { UpstreamCall } from '../domain/ports/upstreams.ts';
import type { Deadlines } from './body-queue.ts';
import { openConnection, openConnections } from './connections.ts';
import type { ConnectionOptions } from './connections.ts';
import { HttpCall } from './http-call.ts';
import type { Upstream } from './upstreams.ts';

export interface HttpUpstreamOptions extends ConnectionOptions {
  /** The base URL, version included: `https://host/v1`. Its query is sent with every call. */
  readonly url: URL;
  /** Headers of every call: the key, and what the upstream wants beside it. */
  readonly headers: Readonly<Record<string, string>>;
  readonly deadlines: Deadlines;
}

/**
 * A provider behind HTTP. Headers are built from nothing but our own values, and those of a trace of which we are a
 * part. Redirects are not followed.
 */
export function createHttpUpstream(options: HttpUpstreamOptions, clock: Clock): Upstream {
  const { url, deadlines } = options;
  const pool = openConnections(url.origin, options);
  const basePath = url.pathname.replace(/\/+$/, '');
  const headers = { 'accept-encoding': 'identity', 'user-agent': 'textgate', ...options.headers };
  return {
    call(call, signal) {
      if (signal.aborted) return Promise.resolve({ kind: 'fault', fault: 'interrupted' });
      return new Promise((resolve) => {
        const exchange = new HttpCall(resolve, clock, deadlinesOf(call, deadlines), signal, call.onSent);
        const once = call.fresh ? openConnection(url, options) : null;
        (once ?? pool).dispatch(
          {
            method: call.method,
            path: withQuery(basePath + call.path, url.searchParams),
            body: call.body,
            headers: {
              ...headers,
              accept: call.stream ? 'text/event-stream' : 'application/json',
              ...(call.body === null ? {} : { 'content-type': 'application/json' }),
              ...call.trace,
            },
          },
          exchange,
        );
        // It closes once its only call is over.
        void once?.close();
      });
    },
    close: () => pool.destroy(),
  };
}

function withQuery(path: string, query: URLSearchParams): string {
  if (query.size === 0) return path;
  return `${path}${path.includes('?') ? '&' : '?'}${query.toString()}`;
}

/** A whole answer comes in one piece at the end, so its silence before that means nothing. */
function deadlinesOf({ stream, leftMs }: UpstreamCall, deadlines: Deadlines): Deadlines {
  const totalMs = Math.min(deadlines.totalMs, leftMs);
  return { ...deadlines, totalMs, firstByteMs: stream ? deadlines.firstByteMs : totalMs };
}

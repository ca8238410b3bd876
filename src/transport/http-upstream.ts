import type { Dispatcher } from 'undici';
import type { Clock } from '../domain/ports/clock.ts';
import type { UpstreamCall } from '../domain/ports/upstreams.ts';
import type { AfterRead, Deadlines } from './body-queue.ts';
import { openConnections } from './connections.ts';
import type { ConnectionOptions } from './connector.ts';
import { HttpCall } from './http-call.ts';
import { forwardingOf } from './proxy.ts';
import type { Upstream } from './upstreams.ts';

/** From this length on, letting a request body go saves more memory than its iteration costs, in UTF-16 code units. */
const longBodyChars = 16_384;

/** The headers that every call has. */
const own = { 'accept-encoding': 'identity', 'user-agent': 'textgate' };

type Headers = Readonly<Record<string, string>>;

/** The settings of one upstream. */
export interface HttpUpstreamOptions extends ConnectionOptions {
  /** The base URL, version included: `https://host/v1`. Its query is sent with every call. */
  readonly url: URL;
  /**
   * Reads the headers of a call, the API key included: a key may be replaced while the service runs. Returns the same
   * object as long as they are the same.
   */
  readonly headers: () => Headers;
  readonly deadlines: Deadlines;
  /** Whether the limits that its answers report are read. */
  readonly learnsLimits: boolean;
}

/**
 * An upstream behind HTTP. Request headers come from the config and from our own trace only, never from a client.
 * Redirects are not followed.
 */
export function createHttpUpstream(options: HttpUpstreamOptions, clock: Clock): Upstream {
  const { url, deadlines, learnsLimits } = options;
  const { pool, openOnce } = openConnections(url.origin, options);
  const forwarding = forwardingOf(url, options.proxy);
  const basePath = (forwarding?.origin ?? '') + url.pathname.replace(/\/+$/, '');
  const headers = new CallHeaders(options.headers, forwarding?.headers);
  const afterRead = url.protocol === 'https:' ? afterTurn : queueMicrotask;
  const query = url.searchParams.toString();
  return {
    call(call, signal) {
      if (signal.aborted) return Promise.resolve({ kind: 'fault', fault: 'interrupted' });
      return new Promise((resolve) => {
        const terms = {
          clock,
          deadlines: deadlinesOf(call, deadlines),
          afterRead,
          signal,
          onSent: call.onSent,
          forwarding,
          learnsLimits,
          decodes: true,
        };
        const exchange = new HttpCall(resolve, terms);
        const once = call.fresh ? openOnce() : null;
        (once ?? pool).dispatch(
          {
            method: call.method,
            path: withQuery(basePath + call.path, query),
            ...bodyAndHeaders(call, headers),
          },
          exchange,
        );
        // Closes the connection after its only call: `close` waits for calls in progress.
        void once?.close();
      });
    },
    close: () => pool.destroy(),
  };
}

/** Of a TLS connection, Node hands over each record of a read by itself, and runs all microtasks after each. */
const afterTurn: AfterRead = (callback) => void setImmediate(callback);

/**
 * A long prompt is let go once it is sent. Not where the caller has to know when it is: undici says so too late then. Over
 * TLS, an answer that is complete before undici knows that the body is written costs the connection.
 */
function bodyAndHeaders(
  call: UpstreamCall,
  headers: CallHeaders,
): Pick<Dispatcher.DispatchOptions, 'body' | 'headers'> {
  const { body, onSent } = call;
  if (onSent !== undefined || body === null || body.length < longBodyChars)
    return { body, headers: headers.of(call) };
  // undici takes any iterable, but its types do not say so.
  const once: unknown = new LongBody(body);
  return {
    body: once as NonNullable<Dispatcher.DispatchOptions['body']>,
    headers: headers.ofLong(call, Buffer.byteLength(body)),
  };
}

function withQuery(path: string, query: string): string {
  return query === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`;
}

/** A whole answer arrives in one piece at its end: its first byte has no deadline before the last one. */
function deadlinesOf(
  { stream, leftMs }: UpstreamCall,
  { firstByteMs, idleMs, totalMs }: Deadlines,
): Deadlines {
  const mostMs = Math.min(totalMs, leftMs);
  return { firstByteMs: stream ? firstByteMs : mostMs, idleMs, totalMs: mostMs };
}

/**
 * The request headers of an upstream's calls. Those of calls of one kind differ in their traces alone, so the list of
 * each kind is kept until the upstream's own headers are others, as after a change of its key.
 */
class CallHeaders {
  readonly #read: () => Headers;
  readonly #forProxy: Headers;
  #readLast: Headers | null = null;
  /** By the kinds of calls. */
  #lists: string[][] = [];

  /**
   * `read` gives the upstream's own headers: the same object as long as they are the same. `forProxy` are for a proxy that
   * reads the calls.
   */
  constructor(read: () => Headers, forProxy: Headers = {}) {
    this.#read = read;
    this.#forProxy = forProxy;
  }

  /** The headers of a call: a flat list of names and values, or an object if it has a trace. */
  of({ stream, body, trace }: UpstreamCall): string[] | Headers {
    const added = this.#read();
    if (trace?.traceparent !== undefined || trace?.tracestate !== undefined)
      return { ...headersOf(added, this.#forProxy, stream, body !== null), ...trace };
    if (added !== this.#readLast) {
      this.#readLast = added;
      this.#lists = [];
    }
    const kind = (stream ? 2 : 0) + (body === null ? 0 : 1);
    return (this.#lists[kind] ??= Object.entries(
      headersOf(added, this.#forProxy, stream, body !== null),
    ).flat());
  }

  /** The headers of a call whose body undici can't measure: its length in bytes is given. */
  ofLong(call: UpstreamCall, bytes: number): string[] | Headers {
    const headers = this.of(call);
    const length = String(bytes);
    return Array.isArray(headers)
      ? [...headers, 'content-length', length]
      : { ...headers, 'content-length': length };
  }
}

function headersOf(added: Headers, forProxy: Headers, stream: boolean, hasBody: boolean): Headers {
  return {
    ...own,
    ...added,
    ...forProxy,
    accept: stream ? 'text/event-stream' : 'application/json',
    ...(hasBody ? { 'content-type': 'application/json' } : {}),
  };
}

/**
 * A request body that is given once and then let go. undici keeps the bytes of a string until its answer has ended, which
 * for streams with long prompts is most of their memory. It needs a `content-length` beside it.
 */
export class LongBody implements Iterable<string> {
  #body: string | null;

  constructor(body: string) {
    this.#body = body;
  }

  *[Symbol.iterator](): Generator<string, void, undefined> {
    const body = this.#body;
    this.#body = null;
    // Without the error, undici would send an empty request before it notices.
    if (body === null) throw new Error('a long body was asked for twice');
    yield body;
  }
}

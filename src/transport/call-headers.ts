import type { UpstreamCall } from '../domain/ports/upstreams.ts';

type Headers = Readonly<Record<string, string>>;

/** The headers that every call has. */
const own = { 'accept-encoding': 'identity', 'user-agent': 'textgate' };

/**
 * The request headers of an upstream's calls. Those of calls of one kind differ in their traces alone, so the list of
 * each kind is kept until the upstream's own headers are others, as after a change of its key.
 */
export class CallHeaders {
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
  of({ stream, body, trace }: Pick<UpstreamCall, 'stream' | 'body' | 'trace'>): string[] | Headers {
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
  ofLong(call: Pick<UpstreamCall, 'stream' | 'body' | 'trace'>, bytes: number): string[] | Headers {
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

import type { TraceHeaders } from './telemetry.ts';

export interface UpstreamCall {
  /** The upstream's configured name. */
  readonly upstream: string;
  readonly method: 'GET' | 'POST';
  /** Below the upstream's base URL. */
  readonly path: string;
  readonly body: string | null;
  /** Whether the answer comes piece by piece, so that silence has a meaning before the end. */
  readonly stream: boolean;
  /** How much is left of the time for the whole, in milliseconds; the upstream's own limit when it is more. */
  readonly leftMs: number;
  /** Whether it must not be sent on a kept connection: the one before was closed just then, and others may be, too. */
  readonly fresh: boolean;
  /** Sent with it, so that the upstream's part of a trace joins ours. */
  readonly trace?: TraceHeaders;
  /** Called once all of the request is written to a connection: the upstream may begin its work. */
  readonly onSent?: () => void;
}

/** How a call can go wrong below the protocol. */
export interface UpstreamFault {
  readonly kind: 'fault';
  readonly fault:
    | 'unreachable'
    /** A kept connection was closed by the other side before it answered: it may be tried once more. */
    | 'stale'
    | 'broken'
    | 'first_byte_timeout'
    | 'idle_timeout'
    | 'total_timeout'
    | 'interrupted';
  /** What the operator should know of it: an error's code and words, never a key. */
  readonly cause?: string;
}

/** An upstream's answer: its head, and a body that is pulled, so that a slow reader slows the upstream. */
export interface UpstreamAnswer {
  readonly kind: 'answer';
  readonly status: number;
  readonly contentType: string;
  readonly retryAfterMs: number | null;
  /** All bytes that have arrived since the last read, waiting for some; `null` at a proper end. */
  read(): Promise<Uint8Array | null | UpstreamFault>;
  /** Lets go of the body: what is still to come is dropped, and a connection that won't end is closed. */
  release(): void;
}

/** Every call to a model's provider. `signal` aborts it at any time. */
export interface Upstreams {
  call(call: UpstreamCall, signal: AbortSignal): Promise<UpstreamAnswer | UpstreamFault>;
}

import type { ConnectionFault } from '../../protocol/text.ts';
import type { LimitReport } from '../../protocol/upstream/limit-headers.ts';
import type { TraceHeaders } from './telemetry.ts';

export interface UpstreamCall {
  /** The upstream's configured name. */
  readonly upstream: string;
  readonly method: 'GET' | 'POST';
  /** Below the upstream's base URL. */
  readonly path: string;
  readonly body: string | null;
  /** Whether the answer is a stream, so that silence before its end counts as a fault. */
  readonly stream: boolean;
  /** The rest of the request's total time, in milliseconds; at most the upstream's own limit applies. */
  readonly leftMs: number;
  /** Whether to use a new connection: a kept one was just found closed, and others may be closed, too. */
  readonly fresh: boolean;
  /** Trace headers to send, so that the upstream's spans join our trace. */
  readonly trace?: TraceHeaders;
  /** Called once the whole request is written to a connection: the upstream may begin to work, and to bill. */
  readonly onSent?: (() => void) | undefined;
}

/** How a call can go wrong below the protocol. */
export interface UpstreamFault {
  readonly kind: 'fault';
  /** `interrupted`: the call's signal was raised. */
  readonly fault: ConnectionFault | 'interrupted';
  /** The code of the system, of TLS or of the HTTP client, such as `ECONNREFUSED`; the error's class if it has none. */
  readonly code?: string;
  /** Details for the operator: an error's code and message, never a key. */
  readonly cause?: string;
}

/** A piece of a body; `null` at its proper end, or the fault that ended it. */
export type BodyPiece = Uint8Array | null | UpstreamFault;

/** Takes a piece, and returns whether to go on. Must not throw. */
export type TakePiece = (piece: BodyPiece) => boolean;

/** An upstream's answer: its head, and a body that is taken, so that a slow client slows the upstream down. */
export interface UpstreamAnswer {
  readonly kind: 'answer';
  readonly status: number;
  readonly contentType: string;
  readonly retryAfterMs: number | null;
  /** The limits that it reports; `null` also where they are not learned. */
  readonly limits: LimitReport | null;
  /** Resolves with all bytes since the last read, waiting if there are none. */
  read(): Promise<BodyPiece>;
  /**
   * Hands over all bytes since the last read, then what arrives together as one piece, until `take` returns false or the
   * body has ended. Pieces that arrive after that are kept, up to a limit, for the next call of this or of `read`.
   */
  consume(take: TakePiece): void;
  /** Drops the rest of the body, and closes the connection if the body does not end soon. */
  release(): void;
  /** Calls back when the call is over for the upstream, too: its body has ended or its connection is closed. */
  whenOver(callback: () => void): void;
}

/** Calls model providers. */
export interface Upstreams {
  /** Sends one call; `signal` aborts it at any time, while its answer is read, too. */
  call(call: UpstreamCall, signal: AbortSignal): Promise<UpstreamAnswer | UpstreamFault>;
}

/** How requests to an upstream without TLS are sent to a proxy, which reads them: with a whole address, and for itself. */
export interface Forwarding {
  /** What comes before the path of every request: the upstream's scheme, host and port. */
  readonly origin: string;
  /** The headers that the proxy reads and removes. */
  readonly headers: Readonly<Record<string, string>>;
  /** The fault of an answer with a status by which only a proxy refuses; `null` for an answer of the upstream. */
  readonly faultOf: (status: number) => UpstreamFault | null;
}

/** A call of the gateway itself, such as a probe or a list of models: a GET that must be answered within `limitMs`. */
export function getCall(upstream: string, path: string, limitMs: number): UpstreamCall {
  return { upstream, method: 'GET', path, body: null, stream: false, leftMs: limitMs, fresh: false };
}

import type { Refusal } from '../shared/errors.ts';
import type { FinishReason, ProtocolViolation, Usage } from '../protocol/text.ts';
import type { ApiKey } from './api-key.ts';
import type {
  Attempt,
  Mode,
  OpenedRecord,
  Outcome,
  RequestKind,
  Reservation,
  SettledRecord,
} from './consumption.ts';
import type { Limits, Standing } from './limits.ts';
import type { OfferedModel } from './routing.ts';

/** Time, handed in so that tests can turn it. */
export interface Clock {
  /** Milliseconds since 1970: for display and records only. */
  now(): number;
  /** Milliseconds that never jump: for durations, deadlines and limits. */
  monotonicMs(): number;
  /** Calls back once after `delayMs`; the returned function cancels it. */
  schedule(delayMs: number, callback: () => void): () => void;
}

/** Fresh 32-digit hexadecimal ids. */
export type NextId = () => string;

/** Finds keys by what a caller presents. */
export interface KeyDirectory {
  /** `null` for every kind of wrong key; a refusal when the store can't say. */
  find(presented: string): ApiKey | null | Refusal | Promise<ApiKey | null | Refusal>;
}

/** Who may run: requests in progress and starts per key, counted in one atomic step. */
export interface Limiter {
  /**
   * Takes a slot and counts a start, or does neither. A granted slot is held under `requestId`. Where all slots are
   * taken it waits as long as the limits say, or until `signal` is raised; first come, first served.
   */
  start(keyId: string, requestId: string, limits: Limits, signal: AbortSignal): Promise<Standing>;
  /** Gives the slot back; harmless when it was given back before. */
  release(keyId: string, requestId: string): Promise<void>;
}

/** The consumption record and the money in it. Both calls resolve when all of it is committed. */
export interface Records {
  /** Begins a record and sets its hold aside, or does neither. */
  open(record: OpenedRecord): Promise<Reservation>;
  /** Ends an open record, gives its hold back and charges it, in one step; a second settlement changes nothing. */
  settle(record: SettledRecord): Promise<void>;
}

/** Records that know how their database is. */
export interface WatchedRecords extends Records {
  /** False when the last write failed, one takes too long, or settlements wait: a record is begun before its call then. */
  readonly takesWrites: boolean;
}

/** Counts tokens where an upstream did not. */
export interface TokenCounter {
  count(text: string): Promise<number>;
}

/** The models on offer, from the config or discovered from an upstream. */
export interface ModelCatalogue {
  find(id: string): Promise<OfferedModel | null | Refusal>;
  list(): Promise<readonly OfferedModel[] | Refusal>;
}

/**
 * Why a running request is stopped from outside; the reason of its abort signal. `crashed`: an error that nothing caught
 * ends the process.
 */
export type Interruption = 'client_closed' | 'cancelled' | 'drained' | 'crashed';

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

/** One attempt at an upstream, as metrics and the log see it. */
interface AttemptSummary extends Attempt {
  readonly cause: string | null;
  /** How the upstream broke its protocol. */
  readonly violations: readonly ProtocolViolation[];
}

/** One request, as metrics and the log see it when it is over. */
export interface ExchangeSummary {
  readonly requestId: string;
  readonly keyId: string | null;
  readonly protocol: RequestKind;
  readonly mode: Mode;
  /** A configured name; `null` when the request ended before one was known. */
  readonly model: string | null;
  readonly upstream: string | null;
  readonly outcome: Outcome;
  readonly status: number;
  readonly refusal: Refusal | null;
  /** What lies behind a failure, for the operator's eyes. */
  readonly cause: string | null;
  /** `null` for an answer that was not finished. */
  readonly finishReason: FinishReason | null;
  readonly usage: Usage | null;
  readonly stripped: readonly string[];
  /** What was sent upstream, in order. */
  readonly attempts: readonly AttemptSummary[];
  /** Whether the client had been sent a part of a stream. */
  readonly streamOpened: boolean;
  /** From arrival until the key's limits had let it in or not, its wait for a slot included; `null` without a key. */
  readonly admittedMs: number | null;
  /** How long it waited for one of its key's slots, in milliseconds. */
  readonly slotWaitMs: number;
  readonly queuedMs: number | null;
  readonly firstTextMs: number | null;
  /** How long the first text of a stream took from the upstream to the client, in milliseconds. */
  readonly handoverMs: number | null;
  /** From arrival until all but its settlement was done. */
  readonly totalMs: number;
  readonly chargeNanos: number;
  /** `null` when nothing is traced. */
  readonly traceId: string | null;
}

/** Reports something that an operator must see and no client is told. Never holds prompts or secrets. */
export type ReportFault = (message: string, error: unknown) => void;

/** What the pipeline tells the outside about itself. */
export interface Telemetry {
  readonly exchangeBegan: (protocol: RequestKind) => void;
  readonly streamOpened: (protocol: RequestKind) => void;
  readonly exchangeEnded: (summary: ExchangeSummary) => void;
  readonly fault: ReportFault;
}

/** The W3C headers by which a service tells the next one which trace their work belongs to. */
export interface TraceHeaders {
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** What a trace is told of a request at its arrival. */
export interface RequestHead {
  readonly method: string;
  /** The path as it was declared, not as it was asked for. */
  readonly route: string;
  readonly trace: TraceHeaders;
}

/** One request's part of a trace. None of this ever fails, waits, or sees a prompt, an answer or a secret. */
export interface Trace {
  /** 32 hexadecimal digits; `null` when nothing is traced. */
  readonly id: string | null;
  /** An attempt at an upstream begins; the returned headers go with it. The summary lists the attempts in this order. */
  attempt(): TraceHeaders;
  /** The request is over and settled. */
  ended(summary: ExchangeSummary): void;
}

/** Traces requests, if the operator wants that. */
export interface Tracer {
  begin(head: RequestHead): Trace;
}

import type { RequestKind } from '../consumption.ts';
import type { ExchangeSummary } from '../exchange-summary.ts';

/** Fields of a log line beside its message and reason: what operators filter by. */
export interface LogFields {
  readonly upstream?: string;
  readonly count?: number;
}

/** Reports a fault to operators that clients don't see: a fixed message, its reason, and fields. Never holds prompts or secrets. */
export type ReportFault = (message: string, error: unknown, fields?: LogFields) => void;

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

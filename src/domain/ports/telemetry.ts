import type { RequestKind } from '../consumption.ts';
import type { ExchangeSummary } from '../exchange-summary.ts';

/** Reports a fault to the operator. `message` is a fixed text; neither argument holds prompts or secrets. */
export type ReportFault = (message: string, error: unknown) => void;

/** The events that the pipeline reports for metrics and the log. */
export interface Telemetry {
  readonly exchangeBegan: (protocol: RequestKind) => void;
  readonly streamOpened: (protocol: RequestKind) => void;
  readonly exchangeEnded: (summary: ExchangeSummary) => void;
  readonly fault: ReportFault;
}

/** The W3C Trace Context headers, which carry a trace from one service to the next. */
export interface TraceHeaders {
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** The facts about a request that its trace begins with. */
export interface RequestHead {
  readonly method: string;
  /** The declared route pattern, not the requested path. */
  readonly route: string;
  readonly trace: TraceHeaders;
}

/** One request's part of a trace. Its methods never fail or wait, and never get a prompt, an answer or a secret. */
export interface Trace {
  /** 32 hexadecimal digits; `null` when tracing is off. */
  readonly id: string | null;
  /** Begins an attempt; returns the headers to send with it. The summary lists attempts in the same order. */
  attempt(): TraceHeaders;
  /** Notes that the request is settled. */
  ended(summary: ExchangeSummary): void;
}

/** Traces requests, if tracing is configured. */
export interface Tracer {
  begin(head: RequestHead): Trace;
}

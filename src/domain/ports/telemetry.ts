import type { ExchangeSummary } from '../exchange-summary.ts';
import type { RequestKind } from '../money/consumption.ts';

/** Fields of a log line beside its message and reason, by which operators filter. */
export interface LogFields {
  readonly upstream?: string;
  /** The name of a webhook, and the id and the type of an event. */
  readonly webhook?: string;
  readonly event?: string;
  readonly type?: string;
  readonly count?: number;
  readonly cause?: string | null;
  /** The address of a client, where the config lets it be logged. */
  readonly clientAddress?: string;
  /** How long a circuit stays open before a trial request, in milliseconds. */
  readonly trialAfterMs?: number;
  /** The names of keys. */
  readonly names?: readonly string[];
  /** The number and the process id of a worker that ended, and after how many milliseconds another one replaces it. */
  readonly worker?: number;
  readonly pid?: number;
  readonly replacedAfterMs?: number;
  /** When a certificate ends, as an ISO time. */
  readonly notAfter?: string;
  /** Records that were removed, postings that were folded, and the time before which they were made. */
  readonly records?: number;
  readonly postings?: number;
  readonly before?: string;
  /** What a line of the audit that could not be stored would have said, beside the address. */
  readonly way?: string;
  readonly actor?: string | null;
  readonly action?: string;
  readonly keyId?: string | null;
  readonly subject?: string | null;
  readonly result?: string;
  readonly times?: number;
  /** The number of a ledger root, the accounts in it, and its hash. */
  readonly root?: number;
  readonly accounts?: number;
  readonly hash?: string;
}

/** Reports a fault to operators only: a fixed message, its reason, and fields. None may contain prompts or secrets. */
export type ReportFault = (message: string, error: unknown, fields?: LogFields) => void;

/** What a request waits for: a slot of its key or group, or a permit of an upstream. */
type WaitReason = 'slot' | 'upstream';

/** Takes the pipeline's reports on requests and faults. */
export interface Telemetry {
  readonly exchangeBegan: (protocol: RequestKind) => void;
  readonly streamOpened: (protocol: RequestKind) => void;
  readonly exchangeEnded: (summary: ExchangeSummary) => void;
  /** A request began to wait in a queue; `waitEnded` follows, however its wait ends. */
  readonly waitBegan: (reason: WaitReason) => void;
  readonly waitEnded: (reason: WaitReason, waitedMs: number) => void;
  readonly fault: ReportFault;
}

/** The W3C headers that connect the spans of a client and a server. */
export interface TraceHeaders {
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** What is known of a request when its trace begins. */
export interface RequestHead {
  readonly method: string;
  /** The declared path, such as `/v1/models/*id`, not the requested one. */
  readonly route: string;
  readonly trace: TraceHeaders;
}

/** One request's part of a trace. Its methods never throw or wait, and get no prompts, answers or secrets. */
export interface Trace {
  /** 32 hexadecimal digits; `null` when tracing is off. */
  readonly id: string | null;
  /** Starts an attempt; the returned headers are sent with it. The summary lists the attempts in this order. */
  attempt(): TraceHeaders;
  /** Ends the trace of a settled request. */
  ended(summary: ExchangeSummary): void;
}

/** Traces requests, if tracing is on. */
export interface Tracer {
  begin(head: RequestHead): Trace;
}

/** The OpenTelemetry variables that the gateway reads itself; the SDK reads the others. */
export interface TracingSettings {
  /** The collector's address and the variable that has it; `null` for the exporter's default. The exporter reads it itself. */
  readonly endpoint: { readonly name: string; readonly url: string } | null;
  /** `OTEL_TRACES_EXPORTER`. */
  readonly exporter: string;
  /** `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL` or `OTEL_EXPORTER_OTLP_PROTOCOL`. */
  readonly protocol: string | undefined;
  /** `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`. */
  readonly sampler: string | undefined;
  readonly samplerArgument: string | undefined;
}

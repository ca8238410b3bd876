import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  defaultTextMapGetter,
  defaultTextMapSetter,
  trace,
} from '@opentelemetry/api';
import type { HrTime, Span, Tracer } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { codeOf } from '../../domain/exchange-summary.ts';
import type { ExchangeSummary } from '../../domain/exchange-summary.ts';
import { isFailed } from '../../domain/money/consumption.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { RequestHead, Trace, TraceHeaders } from '../../domain/ports/telemetry.ts';

const propagator = new W3CTraceContextPropagator();

/**
 * Starts the span of one request, as a child of the client's span if it sent one. Only spans whose ids go out in headers
 * are started as they begin; the rest are made from the summary. A request without a summary leaves no spans.
 */
export function beginTrace(head: RequestHead, tracer: Tracer, clock: Clock): Trace {
  const [arrivedAt, arrivedMs] = [clock.now(), clock.monotonicMs()];
  const sinceArrivalMs = (): number => clock.monotonicMs() - arrivedMs;
  const at = (offsetMs: number): HrTime => toHrTime(arrivedAt + offsetMs);

  const remote = propagator.extract(ROOT_CONTEXT, head.trace, defaultTextMapGetter);
  const request = tracer.startSpan(head.route, { kind: SpanKind.SERVER, startTime: at(0) }, remote);
  const inside = trace.setSpan(ROOT_CONTEXT, request);
  const child = (name: string, startMs: number, kind = SpanKind.INTERNAL): Span =>
    tracer.startSpan(name, { kind, startTime: at(startMs) }, inside);
  const attempts: { readonly span: Span; readonly startMs: number }[] = [];

  return {
    id: request.spanContext().traceId,
    attempt() {
      const startMs = sinceArrivalMs();
      const span = child('attempt', startMs, SpanKind.CLIENT);
      attempts.push({ span, startMs });
      return headersOf(span);
    },
    ended(summary) {
      const { admittedMs, totalMs } = summary;
      // Its times begin with the arrival, which was measured a moment before this trace began: no part may outlast the whole.
      const endMs = Math.max(totalMs, sinceArrivalMs());
      if (admittedMs !== null) child('admission', 0).end(at(admittedMs));
      for (const [index, { span, startMs }] of attempts.entries()) {
        const made = summary.attempts[index];
        if (made !== undefined) fill(span, attemptSpan(made));
        span.end(at(Math.min(endMs, startMs + (made?.durationMs ?? 0))));
      }
      child('settlement', totalMs).end(at(endMs));
      fill(request, requestSpan(summary, head));
      request.end(at(endMs));
    },
  };
}

function fill(span: Span, { name, attributes, failed }: SpanContents): void {
  span.updateName(name);
  span.setAttributes(attributes);
  if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
}

/** The headers that make the upstream's spans children of the attempt. An empty `tracestate` is left out. */
function headersOf(span: Span): TraceHeaders {
  const headers: { traceparent?: string; tracestate?: string } = {};
  propagator.inject(trace.setSpan(ROOT_CONTEXT, span), headers, defaultTextMapSetter);
  if (headers.tracestate === '') delete headers.tracestate;
  return headers;
}

/** Seconds and nanoseconds: OpenTelemetry takes a small plain number for a reading of `performance.now`. */
function toHrTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1_000);
  return [seconds, Math.floor((epochMs - seconds * 1_000) * 1_000_000)];
}

/** The name and attributes of a span, after OpenTelemetry's conventions: only names, numbers and closed codes. */
interface SpanContents {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string | number | string[]>>;
  readonly failed: boolean;
}

/** OpenTelemetry's name for the operation of both protocols. */
const operation = 'chat';

/** The span of a whole request. It has failed unless the client caused the error. */
function requestSpan(summary: ExchangeSummary, { method, route }: RequestHead): SpanContents {
  const { model, status } = summary;
  const code = codeOf(summary);
  return {
    name: model === null ? route : `${operation} ${model}`,
    attributes: withoutNulls({
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': status,
      'client.address': summary.clientAddress,
      'textgate.request_id': summary.requestId,
      'textgate.outcome': summary.outcome,
      'error.type': code,
      ...generation(summary),
    }),
    // An error code with a good status is a failure after the head was sent.
    failed: status >= 500 || (code !== null && status < 400),
  };
}

/** The attributes of OpenTelemetry's GenAI conventions; none for a passthrough request, whose contents are not read. */
function generation(summary: ExchangeSummary): Record<string, string | number | string[] | null> {
  const { protocol, model, upstream, finishReason, usage } = summary;
  if (protocol === 'passthrough') return {};
  return {
    'gen_ai.operation.name': operation,
    'gen_ai.request.model': model,
    'gen_ai.provider.name': upstream,
    'gen_ai.response.finish_reasons': finishReason === null ? null : [finishReason],
    'gen_ai.usage.input_tokens': usage?.inputTokens ?? null,
    'gen_ai.usage.cache_read.input_tokens': usage?.cachedInputTokens ?? null,
    'gen_ai.usage.cache_creation.input_tokens': usage?.cacheWriteTokens ?? null,
    'gen_ai.usage.output_tokens': usage?.outputTokens ?? null,
  };
}

/** The span of one attempt. The cause of a failure is left out: it may contain addresses. */
function attemptSpan({ upstream, model, result }: ExchangeSummary['attempts'][number]): SpanContents {
  const failed = isFailed(result);
  return {
    name: `attempt ${upstream}`,
    attributes: withoutNulls({
      'gen_ai.provider.name': upstream,
      'gen_ai.request.model': model,
      'textgate.attempt.result': result,
      'error.type': failed ? result : null,
    }),
    failed,
  };
}

function withoutNulls<Value>(values: Readonly<Record<string, Value | null>>): Record<string, Value> {
  const known = Object.entries(values).filter((entry): entry is [string, Value] => entry[1] !== null);
  return Object.fromEntries(known);
}

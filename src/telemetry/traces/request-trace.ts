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
import type { Clock } from '../../domain/ports/clock.ts';
import type { RequestHead, Trace, TraceHeaders } from '../../domain/ports/telemetry.ts';
import { attemptSpan, requestSpan } from './span-contents.ts';
import type { SpanContents } from './span-contents.ts';

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

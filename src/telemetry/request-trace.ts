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
import type { Clock } from '../domain/ports/clock.ts';
import type { RequestHead, Trace, TraceHeaders } from '../domain/ports/telemetry.ts';
import { attemptSpan, requestSpan } from './span-contents.ts';
import type { SpanContents } from './span-contents.ts';

const propagator = new W3CTraceContextPropagator();

/**
 * Begins the span of one request, as a child of its client's where there is one. Only the spans whose ids others must
 * know are begun when they begin; the rest are made of the summary. A request that is never summed up leaves none.
 */
export function beginTrace(head: RequestHead, tracer: Tracer, clock: Clock): Trace {
  const [arrivedAt, arrivedMs] = [clock.now(), clock.monotonicMs()];
  const sinceArrivalMs = (): number => clock.monotonicMs() - arrivedMs;
  const at = (offsetMs: number): HrTime => readTime(arrivedAt + offsetMs);

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
      if (admittedMs !== null) child('admission', 0).end(at(admittedMs));
      for (const [index, { span, startMs }] of attempts.entries()) {
        const made = summary.attempts[index];
        if (made !== undefined) fill(span, attemptSpan(made));
        span.end(at(startMs + (made?.durationMs ?? 0)));
      }
      child('settlement', totalMs).end(at(sinceArrivalMs()));
      fill(request, requestSpan(summary, head));
      request.end(at(sinceArrivalMs()));
    },
  };
}

function fill(span: Span, { name, attributes, failed }: SpanContents): void {
  span.updateName(name);
  span.setAttributes(attributes);
  if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
}

/** The headers that make what the upstream traces a child of the attempt. An empty `tracestate` is none. */
function headersOf(span: Span): TraceHeaders {
  const headers: { traceparent?: string; tracestate?: string } = {};
  propagator.inject(trace.setSpan(ROOT_CONTEXT, span), headers, defaultTextMapSetter);
  if (headers.tracestate === '') delete headers.tracestate;
  return headers;
}

/** Seconds and nanoseconds: a plain number would be taken for another clock's when it is small. */
function readTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1_000);
  return [seconds, Math.floor((epochMs - seconds * 1_000) * 1_000_000)];
}

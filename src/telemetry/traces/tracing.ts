import type { Clock } from '../../domain/ports/clock.ts';
import type {
  ReportFault,
  RequestHead,
  Trace,
  Tracer,
  TracingSettings,
} from '../../domain/ports/telemetry.ts';
import type { OtelTracer } from './otel.ts';

const noTrace: Trace = { id: null, attempt: () => ({}), ended: () => {} };

/**
 * Traces nothing and forwards no trace headers: they would identify the client to a provider, and refer its spans to a
 * parent that no span of ours continues.
 */
export const untraced: Tracer = { begin: () => noTrace };

/**
 * Traces requests if there are settings for it, as soon as OpenTelemetry is loaded: only then, so that it costs nothing
 * otherwise.
 */
export function createTracing(settings: TracingSettings | null, clock: Clock, report: ReportFault) {
  let otel = null as OtelTracer | null;
  const load = async (chosen: TracingSettings): Promise<void> => {
    try {
      const { createOtelTracer } = await import('./otel.ts');
      otel = createOtelTracer(chosen, clock, report);
    } catch (error) {
      report('tracing disabled: OpenTelemetry failed to start', error);
    }
  };
  const ready = settings === null ? Promise.resolve() : load(settings);
  return {
    /** Resolves when tracing has started or failed to start. Never rejects. */
    ready,
    begin(head: RequestHead): Trace {
      try {
        return otel === null ? noTrace : guarded(otel.begin(head), report);
      } catch (error) {
        report('tracing a request failed', error);
        return noTrace;
      }
    },
    /** Sends the last spans, within a limited time, at the end of the process. Never rejects. */
    async close(): Promise<void> {
      await ready;
      await otel?.close();
    },
  };
}

/** A trace whose faults are reported and do not fail the request. */
function guarded(trace: Trace, report: ReportFault): Trace {
  const safely = <Value>(work: () => Value, otherwise: Value): Value => {
    try {
      return work();
    } catch (error) {
      report('tracing a request failed', error);
      return otherwise;
    }
  };
  return {
    id: trace.id,
    attempt: () => safely(() => trace.attempt(), {}),
    ended: (summary) => safely(() => trace.ended(summary), undefined),
  };
}

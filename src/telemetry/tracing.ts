import type { Clock } from '../domain/ports/clock.ts';
import type { ReportFault, Trace, Tracer } from '../domain/ports/telemetry.ts';
import type { TracingSettings } from '../domain/tracing-settings.ts';
import type { OtelTracer } from './otel.ts';

export interface Tracing extends Tracer {
  /** Resolves when requests are traced from here on, or it is clear that they will not be. Never rejects. */
  readonly ready: Promise<void>;
  /** Sends the last spans, within a limited time. Never rejects. */
  close(): Promise<void>;
}

const noTrace: Trace = { id: null, attempt: () => ({}), ended: () => {} };

/**
 * Traces nothing, and passes no trace on: a client's trace headers would tell a provider about it, and promise it a
 * parent span of which nobody here takes part.
 */
export const untraced: Tracer = { begin: () => noTrace };

/** Traces requests if there are settings for it. OpenTelemetry is loaded only then, so that it costs nothing otherwise. */
export function createTracing(settings: TracingSettings | null, clock: Clock, report: ReportFault): Tracing {
  let otel = null as OtelTracer | null;
  const load = async (chosen: TracingSettings): Promise<void> => {
    try {
      const { createOtelTracer } = await import('./otel.ts');
      otel = createOtelTracer(chosen, clock, report);
    } catch (error) {
      report('nothing is traced', error);
    }
  };
  const ready = settings === null ? Promise.resolve() : load(settings);
  return {
    ready,
    begin(head) {
      try {
        return otel === null ? noTrace : guarded(otel.begin(head), report);
      } catch (error) {
        report('a request could not be traced', error);
        return noTrace;
      }
    },
    async close() {
      await ready;
      await otel?.close();
    },
  };
}

/** A trace whose faults are told and are no fault of the request. */
function guarded(trace: Trace, report: ReportFault): Trace {
  const safely = <Value>(work: () => Value, otherwise: Value): Value => {
    try {
      return work();
    } catch (error) {
      report('a request could not be traced', error);
      return otherwise;
    }
  };
  return {
    id: trace.id,
    attempt: () => safely(() => trace.attempt(), {}),
    ended: (summary) => safely(() => trace.ended(summary), undefined),
  };
}

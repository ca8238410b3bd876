import type { Clock } from '../domain/ports/clock.ts';
import type { ReportFault, Trace, Tracer } from '../domain/ports/telemetry.ts';
import type { OtelEnvironment, OtelTracer } from './otel.ts';

/** A tracer that may still be loading, and that is closed at the end of the process. */
export interface Tracing extends Tracer {
  /** Resolves when tracing has started or failed to start. Never rejects. */
  readonly ready: Promise<void>;
  /** Sends the last spans, within a limited time. Never rejects. */
  close(): Promise<void>;
}

const noTrace: Trace = { id: null, attempt: () => ({}), ended: () => {} };

/**
 * Traces nothing and forwards no trace headers: they would identify the client to a provider, and refer its spans to a
 * parent that no span of ours continues.
 */
export const untraced: Tracer = { begin: () => noTrace };

/**
 * Traces requests as the `OTEL_*` variables of an environment say; `null` switches tracing off. OpenTelemetry is loaded
 * only when it is on: it costs start time and memory.
 */
export function createTracing(
  environment: OtelEnvironment | null,
  clock: Clock,
  report: ReportFault,
): Tracing {
  let otel = null as OtelTracer | null;
  const load = async (enabled: OtelEnvironment): Promise<void> => {
    try {
      const { createOtelTracer } = await import('./otel.ts');
      otel = createOtelTracer(enabled, clock, report);
    } catch (error) {
      report('tracing disabled: OpenTelemetry failed to start', error);
    }
  };
  const ready = environment === null ? Promise.resolve() : load(environment);
  return {
    ready,
    begin(head) {
      try {
        return otel === null ? noTrace : guarded(otel.begin(head), report);
      } catch (error) {
        report('tracing a request failed', error);
        return noTrace;
      }
    },
    async close() {
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

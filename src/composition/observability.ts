import type { TracingSettings } from '../domain/ports/telemetry.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Workers } from '../domain/ports/workers.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { createMetrics } from '../telemetry/metrics/metrics.ts';
import { createRecentEndings } from '../telemetry/recent-endings.ts';
import { createRefusalReport } from '../telemetry/log/refusal-sums.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import type { TelemetrySink } from '../telemetry/telemetry.ts';
import { createTracing } from '../telemetry/traces/tracing.ts';

/** Metrics, traces, and the reports of the pipeline and of the listeners. */
export type Observability = ReturnType<typeof createObservability>;

/** Starts metrics and, with settings for it, tracing. */
export function createObservability(
  tracing: TracingSettings | null,
  workers: Workers | null,
  clock: Clock,
  log: Log,
) {
  const metrics = createMetrics();
  const recent = createRecentEndings(clock);
  const sinks: TelemetrySink[] = [metrics, recent, log];
  const tracer = createTracing(tracing, clock, log.fault);
  const connections = createRefusalReport(metrics.connectionRefused, log.connectionsRefused, clock);
  const requests = createRefusalReport(metrics.requestRefused, log.requestsRefused, clock);
  return {
    metrics,
    /**
     * What a scrape gets: the metrics of all processes on the port. It fails where the others can't be asked: counters of this
     * one alone would be smaller than before, which is read as a new start.
     */
    exposed: {
      async expose() {
        const own = await metrics.expose();
        if (workers === null) return own;
        const body = await workers.exposeMetrics();
        if (body === null) throw new Error('the primary process did not add up the metrics in time');
        return { ...own, body };
      },
    },
    /** What ended on this process in the last minute. */
    recent: () => recent.read(),
    /** Passes the pipeline's reports on to the metrics and the log. */
    telemetry: createTelemetry(sinks, log.fault),
    /** Passes the pipeline's reports on to one more receiver. */
    addSink: (sink: TelemetrySink) => void sinks.push(sink),
    tracer,
    /** Counts and logs a connection that a listener refused or closed. */
    onConnectionRefused: connections.refused,
    /** Counts and logs a request that a listener refused before any route. */
    onRequestRefused: requests.refused,
    /** Logs the counts not logged yet and sends the last traces. Never rejects. */
    close() {
      connections.close();
      requests.close();
      return tracer.close();
    },
  };
}

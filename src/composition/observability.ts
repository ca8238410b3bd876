import type { TracingSettings } from '../domain/tracing-settings.ts';
import type { ConnectionRefusal } from '../domain/edge/connection-refusal.ts';
import type { EdgeRefusal } from '../domain/edge/edge-refusal.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Workers } from '../domain/ports/workers.ts';
import type { EndingCounts } from '../domain/ports/status.ts';
import type { Telemetry } from '../domain/ports/telemetry.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { createMetrics } from '../telemetry/metrics/metrics.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { createRecentEndings } from '../telemetry/recent-endings.ts';
import { createRefusalReport } from '../telemetry/log/refusal-report.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import type { TelemetrySink } from '../telemetry/telemetry.ts';
import { createTracing } from '../telemetry/traces/tracing.ts';
import type { Tracing } from '../telemetry/traces/tracing.ts';

/** Metrics, traces, and the reports of the pipeline and of the listeners. */
export interface Observability {
  readonly metrics: Metrics;
  /**
   * What a scrape gets: the metrics of all processes on the port. It fails where the others can't be asked: counters of this one
   * alone would be smaller than before, which is read as a new start.
   */
  readonly exposed: Pick<Metrics, 'expose'>;
  /** The processes on the port; `null` where there is one. */
  readonly workers: Workers | null;
  /** What ended on this process in the last minute. */
  readonly recent: () => EndingCounts;
  /** Passes the pipeline's reports on to the metrics and the log. */
  readonly telemetry: Telemetry;
  /** Passes the pipeline's reports on to one more receiver. */
  readonly addSink: (sink: TelemetrySink) => void;
  readonly tracer: Tracing;
  /** Counts and logs a connection that a listener refused or closed. */
  readonly onConnectionRefused: (reason: ConnectionRefusal) => void;
  /** Counts and logs a request that a listener refused before any route. */
  readonly onRequestRefused: (reason: EdgeRefusal) => void;
  /** Logs the counts not logged yet and sends the last traces. Never rejects. */
  close(): Promise<void>;
}

/** Starts metrics and, with settings for it, tracing. */
export function createObservability(
  tracing: TracingSettings | null,
  workers: Workers | null,
  clock: Clock,
  log: Log,
): Observability {
  const metrics = createMetrics();
  const recent = createRecentEndings(clock);
  const sinks: TelemetrySink[] = [metrics, recent, log];
  const tracer = createTracing(tracing, clock, log.fault);
  const connections = createRefusalReport(metrics.connectionRefused, log.connectionsRefused, clock);
  const requests = createRefusalReport(metrics.requestRefused, log.requestsRefused, clock);
  return {
    metrics,
    workers,
    exposed: {
      async expose() {
        const own = await metrics.expose();
        if (workers === null) return own;
        const body = await workers.exposeMetrics();
        if (body === null) throw new Error('the primary process did not add up the metrics in time');
        return { ...own, body };
      },
    },
    recent: () => recent.read(),
    telemetry: createTelemetry(sinks, log.fault),
    addSink: (sink) => void sinks.push(sink),
    tracer,
    onConnectionRefused: connections.refused,
    onRequestRefused: requests.refused,
    close() {
      connections.close();
      requests.close();
      return tracer.close();
    },
  };
}

import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault, Tracer, TracingSettings } from '../../domain/ports/telemetry.ts';
import { reportRarely } from './export-faults.ts';
import { beginTrace } from './request-trace.ts';
import { chooseSampler } from './sampler.ts';

/** How many ended spans may wait for the collector; further ones are dropped. */
const maxWaitingSpans = 4_096;

/** How many spans go out in one request to the collector, and how long the first one waits for more, in milliseconds. */
const maxBatchSpans = 512;
const batchDelayMs = 1_000;

/** How long one export may take with all its retries, in milliseconds. */
const exportTimeoutMs = 10_000;

/** How long the shutdown waits for the last spans to be exported, in milliseconds. */
const maxFlushMs = 3_000;

/** Traces requests, and exports their spans to a collector. */
export interface OtelTracer extends Tracer {
  /** Exports the last spans, within a limited time. Never rejects. */
  close(): Promise<void>;
}

/**
 * OpenTelemetry, configured by its own `OTEL_*` variables, for our spans alone: nothing is registered globally, so that
 * an app around us may trace itself in its own way. The SDK logs nothing; its exporter and resource detector read
 * `process.env` themselves.
 */
export function createOtelTracer(settings: TracingSettings, clock: Clock, report: ReportFault): OtelTracer {
  checkSettings(settings);
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'textgate' }))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: chooseSampler(settings.sampler, settings.samplerArgument),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: reportRarely(new OTLPTraceExporter(), clock, report),
        maxQueueSize: maxWaitingSpans,
        maxExportBatchSize: maxBatchSpans,
        scheduledDelayMillis: batchDelayMs,
        exportTimeoutMillis: exportTimeoutMs,
      }),
    ],
  });
  const tracer = provider.getTracer('textgate');
  return {
    begin: (head) => beginTrace(head, tracer, clock),
    close: () =>
      new Promise((resolve) => {
        const cancel = clock.schedule(maxFlushMs, () => {
          report('exporting the last traces failed', new Error(`no answer within ${maxFlushMs} ms`));
          resolve();
        });
        // The exporter has reported its failure already.
        const sent = provider.shutdown().catch(() => {});
        void sent.then(() => {
          cancel();
          resolve();
        });
      }),
  };
}

/** Refuses what the exporter would fail with later, or replace by its default, without any message. */
function checkSettings({ endpoint, exporter, protocol }: TracingSettings): void {
  if (exporter !== 'otlp') throw new Error('OTEL_TRACES_EXPORTER: expected otlp or none');
  if (endpoint !== null && !/^https?:$/.test(URL.parse(endpoint.url)?.protocol ?? ''))
    throw new Error(`${endpoint.name} is not an http(s) URL`);
  // Collectors take JSON where they take protobuf over HTTP, and neither at the port of gRPC.
  if (protocol !== undefined && !protocol.startsWith('http/'))
    throw new Error(
      'OTEL_EXPORTER_OTLP_PROTOCOL: expected http/json: spans are sent over HTTP, usually to port 4318 of a collector',
    );
}

import { ExportResultCode } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  TracerProvider,
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import type { SpanExporter, Sampler } from '@opentelemetry/sdk-trace';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault, RequestHead, TracingSettings } from '../../domain/ports/telemetry.ts';
import { beginTrace } from './request-trace.ts';

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
export type OtelTracer = ReturnType<typeof createOtelTracer>;

/**
 * OpenTelemetry, configured by its own `OTEL_*` variables, for our spans alone: nothing is registered globally, so that
 * an app around us may trace itself in its own way. The SDK logs nothing; its exporter and resource detector read
 * `process.env` themselves.
 */
export function createOtelTracer(settings: TracingSettings, clock: Clock, report: ReportFault) {
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
    begin: (head: RequestHead) => beginTrace(head, tracer, clock),
    /** Exports the last spans, within a limited time. Never rejects. */
    close: () =>
      new Promise<void>((resolve) => {
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

/** How long after a logged failure further ones are not logged, in milliseconds. */
const silenceMs = 600_000;

/** Reports lost spans, but not every batch: a collector may be down for days. */
export function reportRarely(exporter: SpanExporter, clock: Clock, report: ReportFault): SpanExporter {
  let reportedMs = Number.NEGATIVE_INFINITY;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const nowMs = clock.monotonicMs();
        if (result.code !== ExportResultCode.SUCCESS && nowMs - reportedMs >= silenceMs) {
          reportedMs = nowMs;
          report('exporting traces failed', new Error(reasonOf(result.error)));
        }
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
}

/** A connection to a host with several addresses fails with a code and an empty message. */
function reasonOf(error: (Error & { code?: string | number }) | undefined): string {
  return [error?.code, error?.message].filter(Boolean).join(': ') || 'unknown reason';
}

/** Samplers by OpenTelemetry's names, which the SDK no longer reads by itself. */
const samplers: Readonly<Record<string, (ratio: number) => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (ratio) => new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
};

/** The sampler that `OTEL_TRACES_SAMPLER` names; its argument is a ratio from 0 to 1. */
export function chooseSampler(name = 'parentbased_always_on', argument = '1'): Sampler {
  const ratio = Number(argument);
  const create = Object.hasOwn(samplers, name) ? samplers[name] : undefined;
  if (create === undefined) throw new Error('OTEL_TRACES_SAMPLER is not the name of a sampler');
  if (!(ratio >= 0 && ratio <= 1)) throw new Error('OTEL_TRACES_SAMPLER_ARG is not a ratio from 0 to 1');
  return create(ratio);
}

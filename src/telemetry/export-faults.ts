import { ExportResultCode } from '@opentelemetry/core';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { Clock } from '../domain/ports/clock.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';

/** How long the log is silent about a collector after it was told of it, in milliseconds. */
const silenceMs = 600_000;

/** Tells the log that spans are lost, but not for every batch: a collector may be away for days. */
export function reportRarely(exporter: SpanExporter, clock: Clock, report: ReportFault): SpanExporter {
  let reportedMs = Number.NEGATIVE_INFINITY;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const nowMs = clock.monotonicMs();
        if (result.code !== ExportResultCode.SUCCESS && nowMs - reportedMs >= silenceMs) {
          reportedMs = nowMs;
          report('traces can not be delivered', new Error(reasonOf(result.error)));
        }
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
}

/** A host with several addresses fails with a code and no words. */
function reasonOf(error: (Error & { code?: string | number }) | undefined): string {
  return [error?.code, error?.message].filter(Boolean).join(': ') || 'for no known reason';
}

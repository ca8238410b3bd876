import { ExportResultCode } from '@opentelemetry/core';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';

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

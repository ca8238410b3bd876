import { ExportResultCode } from '@opentelemetry/core';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import { describe, expect, test } from 'vitest';
import { reportRarely } from '../../src/telemetry/traces/otel.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const refused = Object.assign(new Error(''), { code: 'ECONNREFUSED' });

describe('reportRarely', () => {
  test('reports a failing collector once and again after ten minutes, and every batch gets its failure', () => {
    const clock = createFakeClock();
    const reported: unknown[] = [];
    const results: number[] = [];
    const failing: SpanExporter = {
      export: (_spans, done) => done({ code: ExportResultCode.FAILED, error: refused }),
      shutdown: async () => {},
    };
    const exporter = reportRarely(failing, clock, (message, error) => reported.push([message, error]));
    const exportOnce = (): void => exporter.export([], ({ code }) => results.push(code));
    for (let batch = 0; batch < 100; batch++) exportOnce();
    expect(reported).toEqual([['exporting traces failed', new Error('ECONNREFUSED')]]);
    clock.advance(599_999);
    exportOnce();
    expect(reported).toHaveLength(1);
    clock.advance(1);
    exportOnce();
    expect(reported).toHaveLength(2);
    expect(results).toHaveLength(102);
    expect(new Set(results)).toEqual(new Set([ExportResultCode.FAILED]));
  });

  test('reports nothing while the collector accepts spans', () => {
    const working: SpanExporter = {
      export: (_spans, done) => done({ code: ExportResultCode.SUCCESS }),
      shutdown: async () => {},
    };
    const reported: string[] = [];
    const exporter = reportRarely(working, createFakeClock(), (message) => reported.push(message));
    exporter.export([], () => {});
    expect(reported).toEqual([]);
  });
});

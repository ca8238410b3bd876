import { TracerProvider } from '@opentelemetry/sdk-trace';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import { beginTrace } from '../../src/telemetry/traces/request-trace.ts';
import { summary } from '../support/exchange-summary.ts';
import { createFakeClock } from '../support/fake-clock.ts';

test('no part of a trace ends after its request, although the times of the request begin a moment earlier', () => {
  const spans: ReadableSpan[] = [];
  const processor: SpanProcessor = {
    onStart: () => {},
    onEnd: (span) => void spans.push(span),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  const tracer = new TracerProvider({ spanProcessors: [processor] }).getTracer('test');
  const clock = createFakeClock();
  const begun = beginTrace({ method: 'POST', route: '/', trace: {} }, tracer, clock);
  begun.attempt();
  clock.advance(2);
  const made = { upstream: 'local', model: 'tiny', result: 'ok', status: 200, startedMs: 0, durationMs: 9 };
  begun.ended({ ...summary, attempts: [made] as unknown as typeof summary.attempts });
  const endsMs = new Map(
    spans.map(({ name, startTime, endTime }) => {
      const [seconds, nanos] = [endTime[0] - startTime[0], endTime[1] - startTime[1]];
      return [name, [seconds * 1_000 + nanos / 1e6, endTime.join()]] as const;
    }),
  );
  expect([...endsMs.keys()]).toEqual(['admission', 'attempt local', 'settlement', 'chat small']);
  const [, end] = endsMs.get('chat small') ?? [];
  expect(endsMs.get('chat small')).toEqual([summary.totalMs, end]);
  expect(endsMs.get('attempt local')).toEqual([summary.totalMs, end]);
  expect(endsMs.get('settlement')).toEqual([0, end]);
});

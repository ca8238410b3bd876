import { ROOT_CONTEXT, SpanKind, TraceFlags, trace } from '@opentelemetry/api';
import { SamplingDecision } from '@opentelemetry/sdk-trace';
import { describe, expect, test } from 'vitest';
import { chooseSampler } from '../../src/telemetry/traces/otel.ts';

/** Which of three requests is sampled: without a parent, with a sampled parent, with an unsampled parent. */
function recorded(name: string | undefined, argument?: string): readonly boolean[] {
  const sampler = chooseSampler(name, argument);
  const traceId = 'f'.repeat(32);
  const child = (traceFlags: TraceFlags) =>
    trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: '1'.repeat(16), traceFlags, isRemote: true });
  return [ROOT_CONTEXT, child(TraceFlags.SAMPLED), child(TraceFlags.NONE)].map(
    (context) =>
      sampler.shouldSample(context, traceId, 'x', SpanKind.SERVER, {}, []).decision ===
      SamplingDecision.RECORD_AND_SAMPLED,
  );
}

describe('the sampler', () => {
  test.each([
    [undefined, undefined, [true, true, false]],
    ['always_on', undefined, [true, true, true]],
    ['always_off', undefined, [false, false, false]],
    ['traceidratio', '1', [true, true, true]],
    ['traceidratio', '0', [false, false, false]],
    ['parentbased_always_on', undefined, [true, true, false]],
    ['parentbased_always_off', undefined, [false, true, false]],
    ['parentbased_traceidratio', '0', [false, true, false]],
    ['parentbased_traceidratio', '1', [true, true, false]],
  ])('%s with argument %s samples as its name says', (name, argument, expected) => {
    expect(recorded(name, argument)).toEqual(expected);
  });

  test.each([
    ['sometimes', '1'],
    ['toString', '1'],
    ['traceidratio', 'half'],
    ['traceidratio', '1.5'],
    ['traceidratio', '-1'],
  ])('%s with argument %s is rejected', (name, argument) => {
    expect(() => chooseSampler(name, argument)).toThrow(/OTEL_TRACES_SAMPLER/);
  });
});

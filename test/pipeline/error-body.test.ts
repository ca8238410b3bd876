import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { UpstreamAnswer } from '../../src/domain/ports/upstreams.ts';
import { readErrorBody } from '../../src/pipeline/attempts/attempt.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { bodyOf } from '../support/body-of.ts';

type Part = Awaited<ReturnType<UpstreamAnswer['read']>>;

/** The answer of an upstream whose body is these parts, and then nothing more. */
function answerOf(parts: readonly Part[]): UpstreamAnswer & { readonly taken: number } {
  const left = [...parts];
  return {
    kind: 'answer',
    status: 500,
    contentType: '',
    retryAfterMs: null,
    get taken() {
      return parts.length - left.length;
    },
    ...bodyOf(() => (left.length > 0 ? Promise.resolve(left.shift() as Part) : new Promise(() => {}))),
    release: () => {},
  };
}

describe('an error body that never ends', () => {
  test.each([
    ['decides what follows', true, 2_000],
    ['is only shown', false, 250],
  ])('is read for a limited time if it %s', async (_use, isTelling, limitMs) => {
    const clock = createFakeClock();
    let read: unknown = null;
    void readErrorBody(answerOf([Buffer.from('begun')]), clock, isTelling).then((text) => (read = text));
    await setImmediate();
    clock.advance(limitMs - 1);
    await setImmediate();
    expect(read).toBeNull();
    clock.advance(1);
    await setImmediate();
    expect(read).toBe('begun');
    expect(clock.scheduled).toBe(0);
  });

  test('is read up to a limited size', async () => {
    const answer = answerOf(Array.from({ length: 100 }, () => Buffer.alloc(10_000, 'x')));
    expect(await readErrorBody(answer, createFakeClock(), false)).toHaveLength(65_536);
    expect(answer.taken).toBe(7);
  });
});

test('an error body whose connection breaks is what came of it, and an interrupted one is none', async () => {
  const begun = Buffer.from('begun');
  const clock = createFakeClock();
  const broken = { kind: 'fault', fault: 'broken' } as const;
  expect(await readErrorBody(answerOf([begun, broken]), clock, true)).toBe('begun');
  const interrupted = { kind: 'fault', fault: 'interrupted' } as const;
  expect(await readErrorBody(answerOf([begun, interrupted]), clock, true)).toBe(interrupted);
});

import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createMemoryLimiter } from '../../src/coordination/memory-limiter.ts';
import type { Limits } from '../../src/domain/limits/limits.ts';
import { defaultLimits, describeLimiter } from '../conformance/limiter.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const minuteMs = 60_000;
const { signal } = new AbortController();

describeLimiter('the limiter in memory', () => {
  const clock = createFakeClock();
  const keys = new Map<string, Partial<Limits>>();
  const limitsOf = async (keyIds: readonly string[]) =>
    new Map(
      [...keys].filter(([id]) => keyIds.includes(id)).map(([id, own]) => [id, { ...defaultLimits, ...own }]),
    );
  const limiter = createMemoryLimiter(clock, { limitsOf, onFault: () => {} });
  return {
    limiter,
    monotonicMs: () => clock.monotonicMs(),
    advance: (durationMs) => clock.advance(durationMs),
    setLimits: async (keyId, own) => void keys.set(keyId, own),
    settled: () => setImmediate(),
    close: () => limiter.close(),
  };
});

test('the limiter in memory keeps one timer for all its keys, and none once it is closed', async () => {
  const clock = createFakeClock();
  const limiter = createMemoryLimiter(clock);
  const limits = { concurrency: 1, requestsPerMinute: 1, queueWaitMs: 0 };
  for (const keyId of ['a', 'b', 'c']) await limiter.acquire(keyId, 'request', limits, signal);
  expect(clock.scheduled).toBe(1);
  clock.advance(5 * minuteMs);
  expect(clock.scheduled).toBe(1);
  limiter.close();
  expect(clock.scheduled).toBe(0);
});

test('the limiter in memory refuses a request at once when a hundred of its key wait', async () => {
  const limiter = createMemoryLimiter(createFakeClock());
  const limits = { concurrency: 1, requestsPerMinute: 1_000, queueWaitMs: 10_000 };
  const ended: string[] = [];
  for (let count = 0; count < 102; count++)
    void limiter
      .acquire('key', String(count), limits, signal)
      .then(({ verdict }) => ended.push(`${count} ${verdict}`));
  await setImmediate();
  expect(ended).toEqual(['0 granted', '101 concurrency']);
});

test('the limiter in memory never shows a wait above the window, whatever the fractions of the clock', async () => {
  const clock = createFakeClock();
  // 5538.2711508 + 60,000 - 5538.2711508 is 60,000.00000000001, which would be shown as 1m1s.
  const limiter = createMemoryLimiter({ ...clock, monotonicMs: () => 5_538.271_150_8 });
  const limits = { concurrency: 2, requestsPerMinute: 1, queueWaitMs: 0 };
  expect(await limiter.acquire('key', 'a', limits, signal)).toMatchObject({ resetMs: minuteMs });
  expect(await limiter.acquire('key', 'b', limits, signal)).toMatchObject({
    verdict: 'rate',
    resetMs: minuteMs,
  });
});

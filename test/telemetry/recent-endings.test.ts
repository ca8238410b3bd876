import { expect, test } from 'vitest';
import { addUpEndings, createRecentEndings } from '../../src/telemetry/recent-endings.ts';
import { summary } from '../support/exchange-summary.ts';
import { createFakeClock } from '../support/fake-clock.ts';

test('what ended more than a minute ago no longer counts, second by second, over any number of minutes', () => {
  const clock = createFakeClock();
  const recent = createRecentEndings(clock);
  for (let second = 0; second < 200; second++) {
    recent.exchangeEnded(summary);
    expect(recent.read().requests).toBe(Math.min(60, second + 1));
    clock.advance(1_000);
  }
  clock.advance(30_000);
  expect(recent.read().requests).toBe(29);
  clock.advance(3_600_000);
  expect(addUpEndings([recent.read()])).toMatchObject({
    seconds: 60,
    requests: 0,
    endings: {},
    firstTextMs: { p50: null },
  });
  recent.exchangeEnded(summary);
  expect(recent.read().requests).toBe(1);
});

test('times are right to 3 %, from a millisecond to an hour', () => {
  for (const firstTextMs of [3, 10, 47, 312, 1_204, 30_000, 3_000_000]) {
    const recent = createRecentEndings(createFakeClock());
    recent.exchangeEnded({ ...summary, firstTextMs });
    const { p50, p99 } = addUpEndings([recent.read()]).firstTextMs;
    expect(p50).toBe(p99);
    expect(Math.abs((p50 ?? 0) - firstTextMs)).toBeLessThanOrEqual(Math.max(1, 0.03 * firstTextMs));
  }
  const recent = createRecentEndings(createFakeClock());
  for (const firstTextMs of [0, 1e9]) recent.exchangeEnded({ ...summary, firstTextMs });
  expect(addUpEndings([recent.read()]).firstTextMs.p50).toBe(1);
});

test('the slowest of a hundred streams does not change the median, and one of two is the 99th percentile', () => {
  const recent = createRecentEndings(createFakeClock());
  for (let number = 0; number < 98; number++) recent.exchangeEnded({ ...summary, firstTextMs: 100 });
  for (let number = 0; number < 2; number++) recent.exchangeEnded({ ...summary, firstTextMs: 10_000 });
  const { p50, p99 } = addUpEndings([recent.read()]).firstTextMs;
  expect([Math.abs((p50 ?? 0) - 100) <= 3, Math.abs((p99 ?? 0) - 10_000) <= 300]).toEqual([true, true]);
});

test('whole answers and requests that are passed on have no first text, but tokens and endings', () => {
  const recent = createRecentEndings(createFakeClock());
  const usage = {
    inputTokens: 1,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 7,
    reasoningTokens: 0,
    totalTokens: 8,
  };
  recent.exchangeEnded({ ...summary, mode: 'sync', usage });
  recent.exchangeEnded({ ...summary, protocol: 'passthrough', outcome: 'client_closed' });
  expect(addUpEndings([recent.read()])).toMatchObject({
    requests: 2,
    outputTokens: 7,
    firstTextMs: { p50: null, p99: null },
    endings: { completed: 1, client_closed: 1 },
  });
});

test('the endings of several processes add up to those of one that had all of them', () => {
  const clock = createFakeClock();
  const [one, other, both] = [1, 2, 3].map(() => createRecentEndings(clock));
  clock.advance(30_000);
  const fresh = createRecentEndings(clock);
  for (let number = 0; number < 200; number++) {
    const ended = {
      ...summary,
      firstTextMs: 1.1 ** (number % 90),
      outcome: number % 3 === 0 ? ('cancelled' as const) : ('completed' as const),
    };
    (number % 4 === 0 ? one : other)?.exchangeEnded(ended);
    both?.exchangeEnded(ended);
  }
  const counts = [one, other, fresh].flatMap((recent) => recent?.read() ?? []);
  const sum = addUpEndings(counts);
  expect(sum).toEqual(addUpEndings(both === undefined ? [] : [both.read()]));
  expect([sum.requests, sum.seconds, sum.endings.cancelled]).toEqual([200, 30, 67]);
  // As they are told by one process to another.
  expect(addUpEndings(JSON.parse(JSON.stringify(counts)) as typeof counts)).toEqual(sum);
});

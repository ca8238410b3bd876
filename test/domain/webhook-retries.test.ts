import { expect, test } from 'vitest';
import { givenUpMs, maxAttempts, retryDelayMs } from '../../src/domain/webhook-retries.ts';

test('the waits grow from five seconds to an hour, and their sum is about three days', () => {
  const waits = Array.from({ length: maxAttempts - 1 }, (_, at) => retryDelayMs(at + 1, null, 0.5));
  expect(waits.slice(0, 4)).toEqual([5_000, 10_000, 20_000, 40_000]);
  expect(Math.max(...waits)).toBe(3_600_000);
  const sum = waits.reduce((total, wait) => total + wait, 0);
  expect(sum).toBeGreaterThanOrEqual(givenUpMs);
  expect(sum).toBeLessThan(givenUpMs + 3_600_000);
});

test('a wait is drawn up to a fifth longer or shorter, and is no shorter than the receiver asks', () => {
  expect([0, 1].map((random) => retryDelayMs(1, null, random))).toEqual([4_000, 6_000]);
  expect(retryDelayMs(1, 60_000, 0.5)).toBe(60_000);
  expect(retryDelayMs(1_000_000, 1_000, 1)).toBe(4_320_000);
});

import { expect, test } from 'vitest';
import { HeldTimes } from '../../../src/domain/upstream-limiter/held-times.ts';

const nowMs = 100_000;

/** Requests in progress for so long, in milliseconds. */
function inProgress(...agesMs: readonly number[]): readonly { readonly startedMs: number }[] {
  return agesMs.map((ageMs) => ({ startedMs: nowMs - ageMs }));
}

function heldFor(...timesMs: readonly number[]): HeldTimes {
  const held = new HeldTimes();
  for (const timeMs of timesMs) held.add(timeMs);
  return held;
}

/** Times of an exponential distribution of this mean, as even as 100 of them can be. */
const exponential = Array.from({ length: 100 }, (_, at) => -Math.log(1 - (at + 0.5) / 100) * 3_000);

test('where all answers take the same time, a permit is free when the one before has taken it', () => {
  const held = heldFor(2_000, 2_000);
  expect(held.waitMs(inProgress(500), 1, 0, nowMs)).toBe(1_500);
  expect(held.waitMs(inProgress(500), 1, 3, nowMs)).toBe(7_500);
});

test('where answers take any time, the one in progress goes on for as long as a new one, however old it is', () => {
  const held = heldFor(...exponential);
  for (const ageMs of [0, 1_000, 3_000, 6_000])
    expect(held.waitMs(inProgress(ageMs), 1, 0, nowMs) / 3_000).toBeCloseTo(1, 0.5);
  // The next of four is over in a quarter of the time.
  for (const ahead of [0, 1, 9])
    expect(held.waitMs(inProgress(5_000, 2_000, 900, 0), 4, ahead, nowMs) / 750).toBeCloseTo(ahead + 1, 0);
});

test('a request that is in progress for longer than any other is expected to take the mean on from there', () => {
  expect(heldFor(1_000, 3_000).waitMs(inProgress(50_000), 1, 0, nowMs)).toBe(2_000);
});

test('nothing is waited for while a permit is free, and a limit of nothing is no division by it', () => {
  const held = heldFor(1_000);
  expect(held.waitMs(inProgress(500), 2, 0, nowMs)).toBe(0);
  expect(held.waitMs([], 0, 0, nowMs)).toBeGreaterThanOrEqual(0);
  expect(held.waitMs([], 0, 2, nowMs)).toBeGreaterThanOrEqual(2_000);
  expect(new HeldTimes().waitMs([], 0, 2, nowMs)).toBe(0);
  expect(heldFor(0, 0).waitMs(inProgress(0), 1, 5, nowMs)).toBe(0);
});

test('a hundred answers are remembered, so that an upstream which gets slower is soon known to be', () => {
  const held = heldFor(...exponential);
  for (let count = 0; count < 100; count++) held.add(20_000);
  expect(held.waitMs(inProgress(5_000), 1, 1, nowMs)).toBe(35_000);
});

import { expect, test } from 'vitest';
import { leastWithin } from './bound.ts';
import { leastFall, mostExtra, usualPolicy, within } from './hedge.ts';
import { play } from './play.ts';
import { longTail, stalls, together } from './shapes.ts';

const terms = { requests: 4_000, seed: 7 };

test('the 99th percentile of the time to the first text falls, within the budget of second requests', async () => {
  const plain = await play(stalls, null, terms);
  const hedged = await play(stalls, usualPolicy, terms);
  expect(plain.extra).toBe(0);
  expect(within(plain, 0.99) / within(plain, 0.5)).toBeGreaterThan(15);
  expect(within(hedged, 0.99)).toBeLessThan((1 - leastFall) * within(plain, 0.99));
  expect(hedged.extra).toBeGreaterThan(0.02);
  expect(hedged.extra).toBeLessThanOrEqual(mostExtra);
  expect(hedged.hedges.won).toBeGreaterThan(50);
});

test('upstreams that are slow at the same time do not get more than the budget', async () => {
  const hedged = await play(together, { after: { kind: 'time', ms: 1_000 }, budget: 0.01 }, terms);
  expect(hedged.extra).toBeLessThanOrEqual(0.01);
  expect(hedged.hedges.refused).toBeGreaterThan(0);
});

test('the measured quantile does about as well as the best delay, known beforehand', async () => {
  for (const shape of [stalls, longTail]) {
    const hedged = await play(shape, usualPolicy, { requests: 10_000, seed: 7 });
    const leastMs = leastWithin(shape, mostExtra, 0.99, 7);
    expect(within(hedged, 0.99) / leastMs).toBeGreaterThan(0.9);
    expect(within(hedged, 0.99) / leastMs).toBeLessThan(1.15);
  }
});

import { expect, test } from 'vitest';
import { DecayedQuantile } from '../../src/domain/routing/decayed-times.ts';
import { randomNumbers } from '../support/random-numbers.ts';

test('a quantile of many durations is right to a tenth, at any scale', () => {
  const { random, seed } = randomNumbers();
  for (const scaleMs of [0.5, 20, 400, 60_000]) {
    const known = new DecayedQuantile();
    const values = Array.from({ length: 5_000 }, () => scaleMs * Math.exp(2 * random()));
    for (const value of values) known.add(value, 0);
    const sorted = values.toSorted((a, b) => a - b);
    for (const share of [0.5, 0.9, 0.95, 0.99]) {
      const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
      const told = known.within(share) ?? 0;
      expect(Math.abs(told - exact), `seed ${seed}`).toBeLessThan(Math.max(1, exact * 0.1));
    }
  }
});

test('older durations count less, also after days without a new one', () => {
  const known = new DecayedQuantile();
  expect(known.within(0.95)).toBeNull();
  for (let count = 0; count < 100; count++) known.add(100, 0);
  expect(known.count(0)).toBeCloseTo(100);
  expect(known.count(300_000)).toBeCloseTo(50);
  const later = 10 * 86_400_000;
  for (let count = 0; count < 30; count++) known.add(5_000, later);
  expect(known.count(later)).toBeCloseTo(30);
  expect(known.within(0.5)).toBeGreaterThan(4_500);
});

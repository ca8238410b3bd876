import { describe, expect, test } from 'vitest';
import { addedPerRound, median, percentile, spreadOf, summarize } from './statistics.ts';

describe('the statistics of the bench', () => {
  test.each<[readonly number[], number]>([
    [[3, 1, 2], 2],
    [[4, 1, 3, 2], 2.5],
    [[7], 7],
    [[], Number.NaN],
  ])('the median of %j is %d', (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  test.each<[number, number]>([
    [0, 1],
    [0.5, 50],
    [0.99, 99],
    [0.995, 100],
    [1, 100],
  ])('percentiles are values that occurred: at %d of 1 to 100 it is %d', (share, expected) => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(percentile(values, share)).toBe(expected);
  });

  test('no values have no percentile', () => {
    expect(spreadOf([])).toEqual({ p50: Number.NaN, p99: Number.NaN, max: Number.NaN });
  });

  test('the range is that of all rounds', () => {
    expect(summarize([5, 9, 6])).toEqual({ median: 6, min: 5, max: 9, rounds: 3 });
  });

  test('what is added is the difference within each round, and rounds without a base do not count', () => {
    const values = new Map([
      [0, 12],
      [1, 25],
      [2, 99],
    ]);
    const base = new Map([
      [0, 10],
      [1, 20],
    ]);
    expect(addedPerRound(values, base)).toEqual([2, 5]);
  });
});

import { describe, expect, test } from 'vitest';
import { addedPerRound, compareRounds, median, percentile, spreadOf, summarize } from './statistics.ts';

/** Values of rounds in their order. */
const roundsOf = (...values: readonly number[]): ReadonlyMap<number, number> => new Map(values.entries());

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

  test('half of the rounds lie between the quartiles', () => {
    expect(summarize(roundsOf(5, 9, 6, 1, 7))).toMatchObject({ median: 6, low: 5, high: 7, rounds: 5 });
    expect(summarize(roundsOf(1, 2))).toMatchObject({ median: 1.5, low: 1.25, high: 1.75, rounds: 2 });
    expect(summarize(roundsOf(4))).toMatchObject({ median: 4, low: 4, high: 4, rounds: 1 });
  });

  test.each<[string, readonly number[], readonly number[]]>([
    ['within noise', [10, 11, 12, 13, 10], [11, 12, 11, 12, 11]],
    ['within noise', [9, 9, 9, 9, 11], [10, 10, 10, 10, 10]],
    ['different', [9, 9, 9, 9, 9], [10, 10, 10, 10, 10]],
    // One round of eight may be disturbed, two may not.
    ['different', [9, 9, 9, 9, 9, 9, 9, 30], [10, 10, 10, 10, 10, 10, 10, 10]],
    ['within noise', [9, 9, 9, 9, 9, 9, 30, 30], [10, 10, 10, 10, 10, 10, 10, 10]],
    // The machine got slower, and both with it: each round is held against itself.
    ['different', [10, 20, 30, 40, 50], [11, 22, 33, 44, 55]],
    ['different', [20, 20, 20], [10, 10, 10]],
    ['too few rounds', [20, 20], [10, 10]],
    ['too few rounds', [20, 20, 20], [10]],
  ])('says "%s" of %j beside %j', (verdict, own, other) => {
    expect(compareRounds(summarize(roundsOf(...own)), summarize(roundsOf(...other)))).toBe(verdict);
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
    expect(addedPerRound(values, base)).toEqual(roundsOf(2, 5));
  });
});

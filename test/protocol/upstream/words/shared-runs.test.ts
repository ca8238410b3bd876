import { describe, expect, test } from 'vitest';
import { findSharedRuns, findWindows } from '../../../../src/protocol/upstream/words/shared-runs.ts';

const unitsOf = (text: string): number[] => Array.from(text, (letter) => letter.charCodeAt(0));

describe('the windows that a text shares with another one', () => {
  const find = (text: string, starts: readonly number[], length: number, other: string) =>
    findWindows(unitsOf(text), starts, length, unitsOf(other));

  test.each<[string, string, string, number[]]>([
    ['at its beginning', 'xabcx', 'abcyyy', [1]],
    ['in its middle', 'xabcx', 'yabcy', [1]],
    ['at its end', 'xabcx', 'yyyabc', [1]],
    ['as all of it', 'abc', 'abc', [0]],
    ['twice', 'abcabc', 'yabcyabc', [0, 3]],
    ['but for the last unit', 'abcx', 'abyyyab', []],
    ['but for the first unit', 'abcx', 'ybcyybc', []],
    ['with an empty one', 'abc', '', []],
  ])('are found: %s', (_where, text, other, found) => {
    const starts = Array.from({ length: text.length - 2 }, (_, at) => at);
    expect(find(text, starts, 3, other)).toEqual(found);
  });

  test('are those that were asked for', () => {
    expect(find('abcabc', [3], 3, 'abc')).toEqual([3]);
    expect(find('abcabc', [], 3, 'abc')).toEqual([]);
  });
});

describe('the runs that a text shares with another one', () => {
  const find = (text: string, other: string, counts?: (unit: number) => boolean) =>
    findSharedRuns(unitsOf(text), 3, unitsOf(other), counts);

  test.each<[string, string, string, [number, number][]]>([
    ['a run of the least length', 'xxabcxx', 'abc', [[2, 5]]],
    ['a shorter one', 'xxabxx', 'ab', []],
    ['a longer one', 'xabcdefx', 'yabcdefy', [[1, 7]]],
    ['all of it', 'abcdef', 'abcdef', [[0, 6]]],
    [
      'two with a unit between them',
      'abcxdef',
      'abcdef',
      [
        [0, 3],
        [4, 7],
      ],
    ],
    ['two side by side, which are one', 'defabc', 'abcdef', [[0, 6]]],
  ])('are found: %s', (_what, text, other, runs) => {
    expect(find(text, other)).toEqual(runs);
  });

  test('have only units that count', () => {
    const isLetter = (unit: number): boolean => unit > 0x39;
    expect(find('abc1def', 'abc1def', isLetter)).toEqual([
      [0, 3],
      [4, 7],
    ]);
    expect(find('ab1cde', 'ab1cde', isLetter)).toEqual([[3, 6]]);
  });
});

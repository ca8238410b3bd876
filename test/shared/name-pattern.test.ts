import { describe, expect, test } from 'vitest';
import { matchName, renameBy } from '../../src/shared/name-pattern.ts';

describe('a pattern of names', () => {
  test.each([
    ['small', 'small', ''],
    ['small', 'smaller', null],
    ['*', '', ''],
    ['*', 'a/b', 'a/b'],
    ['org/*', 'org/small', 'small'],
    ['org/*', 'other/small', null],
    ['*-it', 'gemma-it', 'gemma'],
    ['a*b', 'ab', ''],
    ['ab*ba', 'aba', null],
  ])('%j matches the name %j with the rest %j', (pattern, name, left) => {
    expect(matchName(pattern, name)).toBe(left);
  });
});

describe('renameBy', () => {
  test('renames by the first matching pattern only', () => {
    const patterns = { 'org/special': 'special', 'org/*': 'theirs-*', '*': 'x-*' };
    expect(['org/special', 'org/$&', 'mine'].map((name) => renameBy(patterns, name))).toEqual([
      'special',
      'theirs-$&',
      'x-mine',
    ]);
    expect(renameBy({}, 'mine')).toBe('mine');
  });
});

import { expect, test } from 'vitest';
import { settledReads } from '../../src/composition/settled-reads.ts';

test('a value counts once two reads in a row have found it, and is the same object while it is equal', async () => {
  const found = [
    ['a'],
    ['a', 'b'],
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
    ['d'],
    ['a', 'b', 'c'],
  ];
  const first = ['a'];
  const read = settledReads(first, async () => found.shift() ?? []);
  const taken: (readonly string[])[] = [];
  for (let times = 0; times < 7; times++) taken.push(await read());
  expect(taken.map((value) => value.join(''))).toEqual(['a', 'a', 'a', 'abc', 'abc', 'abc', 'abc']);
  expect(taken.slice(0, 3).every((value) => value === first)).toBe(true);
  expect(new Set(taken.slice(3)).size).toBe(1);
});

test('a read that fails is a failure at once, and what was found before it still counts', async () => {
  const found: (string | Error)[] = ['b', new Error('gone'), 'b'];
  const read = settledReads('a', async () => {
    const next = found.shift();
    if (next instanceof Error) throw next;
    return next ?? '';
  });
  expect(await read()).toBe('a');
  await expect(read()).rejects.toThrow('gone');
  expect(await read()).toBe('b');
});

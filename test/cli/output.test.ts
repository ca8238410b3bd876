import { expect, test } from 'vitest';
import { forTerminal, writeFields, writeTable } from '../../src/cli/output.ts';

test('a table escapes control characters, and stays aligned', () => {
  const table = writeTable(
    ['MODEL', 'N'],
    [
      ['a\u001b[2J\nb', '1'],
      ['plain', '2'],
    ],
  );
  expect(table).toBe(['MODEL          N', String.raw`a\u{1b}[2J\nb  1`, 'plain          2'].join('\n'));
});

test('a table has numbers on the right, and cuts only what may be cut', () => {
  const table = writeTable(
    ['ID', 'NAME', 'N'],
    [
      ['x'.repeat(40), 'y'.repeat(80), '1'],
      ['b', 'c', '200'],
    ],
    {
      right: ['N'],
      cut: ['NAME'],
    },
  );
  expect(table.split('\n')).toEqual([
    `ID${' '.repeat(40)}NAME${' '.repeat(51)}  N`,
    `${'x'.repeat(40)}  ${'y'.repeat(52)}…    1`,
    `b${' '.repeat(41)}c${' '.repeat(54)}200`,
  ]);
});

test('columns that may be cut get one width, down to that of their titles, which are never cut', () => {
  const cells = [['x'.repeat(60), 'y'.repeat(70), 'z'.repeat(20)]];
  const layout = { cut: ['NAME', 'A LONG TITLE'] };
  const widthsIn = (width: number) =>
    writeTable(['NAME', 'A LONG TITLE', 'N'], cells, { ...layout, width })
      .split('\n')[1]
      ?.split('  ')
      .map(({ length }) => length);
  expect(widthsIn(100)).toEqual([38, 38, 20]);
  expect(widthsIn(45)).toEqual([9, 12, 20]);
  expect(widthsIn(10)).toEqual([8, 12, 20]);
});

test('an error escapes control characters, and keeps its lines', () => {
  expect(forTerminal('no key \u001b[2J\u202e\n  - x')).toBe('no key \\u{1b}[2J\\u{202e}\n  - x');
});

test('labelled texts are wrapped between words at 100 characters, and a longer word is broken', () => {
  const words = Array.from({ length: 30 }, (_, index) => `word${index}`).join(' ');
  const lines = writeFields([
    ['first', words],
    ['no', 'x'.repeat(150)],
    ['', 'a\u001b[2J'],
  ]).split('\n');
  expect(Math.max(...lines.map((line) => line.length))).toBe(100);
  expect(lines[0]).toMatch(/^first {2}word0 .* word\d+$/);
  expect(
    lines
      .slice(0, 3)
      .map((line) => line.slice(7))
      .join(' '),
  ).toBe(words);
  expect(lines.slice(3)).toEqual([
    `no     ${'x'.repeat(93)}`,
    `       ${'x'.repeat(57)}`,
    String.raw`       a\u{1b}[2J`,
  ]);
});

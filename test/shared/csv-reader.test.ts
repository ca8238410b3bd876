import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CsvReader } from '../../src/shared/csv-reader.ts';
import { propertyRun } from '../support/property-run.ts';

/** The cells of a text that is read in pieces of a size. */
function read(text: string, pieceChars = text.length || 1): readonly (readonly string[])[] {
  const reader = new CsvReader();
  const rows = [];
  for (let at = 0; at < text.length; at += pieceChars)
    rows.push(...reader.push(text.slice(at, at + pieceChars)));
  return [...rows, ...reader.end()].map(({ cells }) => cells);
}

describe('CSV is read', () => {
  test.each<[string, string, readonly (readonly string[])[]]>([
    [
      'with line feeds',
      'a,b\n1,2\n',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
    ],
    [
      'with carriage returns',
      'a,b\r\n1,2\r\n',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
    ],
    ['without a line end at its end', 'a\n1', [['a'], ['1']]],
    ['with a byte order mark', '\ufeffa\n', [['a']]],
    ['with a byte order mark before a quote', '\ufeff"a"\n', [['a']]],
    [
      'with empty cells',
      'a,,\n,,b\n',
      [
        ['a', '', ''],
        ['', '', 'b'],
      ],
    ],
    ['with empty lines, which are passed over', 'a\n\n\r\n1\n', [['a'], ['1']]],
    ['with an empty quoted cell as a row', '""\n', [['']]],
    ['with commas, quotes and line ends in quotes', '"a,""b""\r\nc",d\n', [['a,"b"\r\nc', 'd']]],
    ['with nothing in it', '', []],
  ])('%s', (_, text, rows) => {
    for (const pieceChars of [1, 2, 3, text.length || 1]) expect(read(text, pieceChars)).toEqual(rows);
  });

  test('as it was written, at every cut', () => {
    const cell = fc.string({
      unit: fc.constantFrom('a', ',', '"', '\n', '\r\n', ' ', '€', '\u{1f600}'),
      maxLength: 6,
    });
    const rows = fc.array(fc.array(cell, { minLength: 1, maxLength: 4 }), { maxLength: 5 });
    const lineEnd = fc.constantFrom('\n', '\r\n');
    fc.assert(
      fc.property(rows, lineEnd, fc.integer({ min: 1, max: 9 }), (wanted, end, pieceChars) => {
        const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`;
        const text = wanted.map((row) => row.map(quote).join(',') + end).join('');
        expect(read(text, pieceChars)).toEqual(wanted);
      }),
      propertyRun(300),
    );
  });

  test('with the line on which each row begins', () => {
    const reader = new CsvReader();
    const rows = [...reader.push('a\n"1\n2",x\n\nb'), ...reader.end()];
    expect(rows.map(({ line }) => line)).toEqual([1, 2, 5]);
  });
});

test.each([
  ['a quoted cell that is not closed', 'a\n"b\n\n', /^line 4: a quoted cell is not closed$/],
  ['text behind a quoted cell', 'a\n"b"c\n', /^line 2: text follows/],
  ['a quote within a plain cell', 'a\nb"c"\n', /^line 2: a quote is in a cell that does not begin with one$/],
  ['a carriage return alone', 'a\rb\n', /^line 1: text follows/],
  ['a cell without an end', `"${'x'.repeat(70_000)}`, /^line 1: a cell has more than 65536 characters/],
  ['a row without an end', ','.repeat(2_000), /^line 1: a row has more than 1000 cells$/],
])('%s is a fault with its line', (_, text, message) => {
  expect(() => read(text, 7)).toThrow(message);
});

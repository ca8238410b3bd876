import { expect, test } from 'vitest';
import { writeTable } from '../../src/cli/output.ts';

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

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { writeContractTables } from './support/contract-table.ts';

const file = join(import.meta.dirname, '..', 'README.md');
const start =
  '<!-- compatibility tables, written by UPDATE_README=1 npx vitest run test/readme.test.ts -->\n';
const end = '\n<!-- end of the compatibility tables -->';

describe('the README', () => {
  test('has the compatibility tables that the registry says', () => {
    const text = readFileSync(file, 'utf8');
    const [before = '', rest = ''] = text.split(start);
    const [, after = ''] = rest.split(end);
    const wanted = `${before}${start}\n${writeContractTables()}\n${end}${after}`;
    if (process.env['UPDATE_README'] === '1') writeFileSync(file, wanted);
    expect(readFileSync(file, 'utf8')).toBe(wanted);
  });

  test('names the reason of every dependency', () => {
    const text = readFileSync(file, 'utf8');
    const { dependencies } = JSON.parse(readFileSync(join(file, '..', 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    for (const name of Object.keys(dependencies)) expect(text).toMatch(new RegExp(`\\| ${name} \\| \\S`));
  });
});

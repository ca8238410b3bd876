import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { disconnectTable, settlementTable } from '../src/domain/settlement.ts';
import { writeContractTables } from './support/contract-table.ts';
import { compareSection } from './support/generated-section.ts';

const file = join(import.meta.dirname, '..', 'README.md');
describe('the README', () => {
  test('has the compatibility tables that the registry says', () => {
    const { wanted, found } = compareSection('compatibility tables', writeContractTables());
    expect(found).toBe(wanted);
  });

  test('has the settlement table that requests are settled by', () => {
    const departures = Object.entries(disconnectTable).map(
      ([rule, row]) => [`client_closed or cancelled, \`onDisconnect: ${rule}\``, row] as const,
    );
    const all = [...Object.entries(settlementTable), ...departures];
    const rows = all.map(
      ([outcome, { none, awaited, unsent, sent }]) =>
        `| ${outcome} | ${none} | ${awaited} | ${unsent} | ${sent} |`,
    );
    const head = [
      '| the request was | nothing had come | a whole answer was awaited | thoughts had come, or text that did not go out | text had been streamed |',
      '|---|---|---|---|---|',
    ];
    const { wanted, found } = compareSection('the settlement table', [...head, ...rows].join('\n'));
    expect(found).toBe(wanted);
  });

  test('names the reason of every dependency', () => {
    const text = readFileSync(file, 'utf8');
    const { dependencies } = JSON.parse(readFileSync(join(file, '..', 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    for (const name of Object.keys(dependencies)) expect(text).toMatch(new RegExp(`\\| ${name} \\| \\S`));
  });
});

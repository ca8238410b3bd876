import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calendarOf } from '../../src/cli/reconcile/calendar.ts';
import { compareUsage } from '../../src/cli/reconcile/compare.ts';
import { OurUsageReader } from '../../src/cli/reconcile/our-usage.ts';
import { readExport } from '../../src/cli/reconcile/read-export.ts';
import { writeReport } from '../../src/cli/reconcile/report.ts';
import { attemptOf, recordOf } from '../cli/reconcile/scene.ts';
import { writeExportFieldsTable } from '../support/export-fields-table.ts';
import { compareSection } from '../support/generated-section.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

test('the page about reconciliation lists the fields that are read', () => {
  const { wanted, found } = compareSection('the fields of exports', writeExportFieldsTable());
  expect(found).toBe(wanted);
});

test('the page about reconciliation shows what the command prints', async () => {
  const range = { from: '2030-01-30', to: '2030-02-01' };
  const calendar = calendarOf('UTC');
  const reader = new OurUsageReader('bought', range, calendar);
  const call = (day: string, model: string, input: number, output: number) => {
    const beganMs = Date.parse(`${day}T12:00:00Z`);
    const sums = { input, cached: 0, cacheWrite: 0, output };
    const attempt = { beganMs, durationMs: 2_000, model, ...sums, countsAtEnd: false };
    reader.add(recordOf(beganMs, [attemptOf(attempt, beganMs, { upstream: 'bought' })], { charge: '0.42' }));
  };
  const beganMs = Date.parse('2030-01-31T13:00:00Z');
  const broken = attemptOf(null, beganMs, { upstream: 'bought', model: 'gpt-5', result: 'truncated' });
  reader.add(recordOf(beganMs, [broken], { charge: '0.00' }));
  call('2030-01-31', 'gpt-5-mini', 12_000, 3_100);
  call('2030-01-31', 'gpt-5', 38_700, 8_800);
  call('2030-01-30', 'gpt-5', 41_200, 9_300);
  const file = join(makeTemporaryFolder(), 'usage.csv');
  writeFileSync(
    file,
    `date,model,requests,input_tokens,output_tokens,cost
2030-01-30,gpt-5,1,41200,9300,0.14
2030-01-31,gpt-5,2,38700,9700,0.15
2030-01-31,gpt-5-mini-2025-08-07,1,12000,3100,0.01
`,
  );
  const theirs = await readExport(file, { format: null, calendar, names: new Map() });
  const ours = reader.usage();
  const found = compareUsage(theirs, ours, range, 0.01);
  const report = writeReport({
    upstream: 'bought',
    range,
    tolerance: 0.01,
    theirs,
    ours,
    found,
    isOver: true,
  });
  const { wanted, found: shown } = compareSection('a reconciliation', `\`\`\`text\n${report}\n\`\`\``);
  expect(shown).toBe(wanted);
});

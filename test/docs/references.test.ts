import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandVariables, serveVariables } from '../../src/config/environment.ts';
import { writeAlertEntries } from '../support/alert-entries.ts';
import { compareSection } from '../support/generated-section.ts';
import { listMetrics, writeMetricsTable } from '../support/metrics-table.ts';
import { writeSizingTable } from '../support/sizing-table.ts';
import { startGateway } from '../support/test-gateway.ts';
import { writeVariableTables } from '../support/variables-table.ts';

const root = join(import.meta.dirname, '..', '..');

/** What a process of several workers sets for its own workers: no operator's variable. */
const internalVariables = ['TEXTGATE_WORKER_SEAT'];

test('the page of variables lists those of the help text', () => {
  const { wanted, found } = compareSection('environment variables', writeVariableTables());
  expect(found).toBe(wanted);
});

test('every variable that the code reads is listed', () => {
  const sources = globSync('src/**/*.ts', { cwd: root }).map((path) =>
    readFileSync(join(root, path), 'utf8'),
  );
  const read = new Set(sources.flatMap((text) => text.match(/(?<=')TEXTGATE_[A-Z_]+(?=')/g) ?? []));
  const listed = [...serveVariables, ...commandVariables].map(({ name }) => name);
  expect(new Set([...listed, ...internalVariables])).toEqual(read);
});

test('the page of metrics has every metric with its labels', async () => {
  const { wanted, found } = compareSection('metrics', await writeMetricsTable());
  expect(found).toBe(wanted);
});

test('a gateway with all features exports the metrics of the page, and no others of its own', async () => {
  const gateway = await startGateway({ metering: { sample: 1 } });
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  await gateway.close();
  const exported = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  const own = exported.filter((name) => !/^(process|nodejs)_/.test(name ?? ''));
  const listed = (await listMetrics()).map(({ name }) => name);
  expect(own).toHaveLength(listed.length);
  expect(new Set(own)).toEqual(new Set(listed));
});

test('the page about sizing reckons with the figures of the page of performance', () => {
  const { wanted, found } = compareSection('sizing', writeSizingTable());
  expect(found).toBe(wanted);
});

test('the page of alerts has every alert of the rules', () => {
  const { wanted, found } = compareSection('alerts', writeAlertEntries());
  expect(found).toBe(wanted);
});

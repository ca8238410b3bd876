import { expect, test } from 'vitest';
import type { PresentedAuditLine } from '../../src/http/present/audit.ts';
import { startCommanded } from '../support/commanded-gateway.ts';

test('textgate audit lists what commands changed, as a table, JSON and CSV, filtered as asked for', async () => {
  const gateway = await startCommanded();
  await gateway.run('keys', 'create', 'bob', '--requests-per-minute', '60');
  await gateway.run('keys', 'update', 'bob', '--requests-per-minute', '10');
  await gateway.run('keys', 'create', 'eve');
  const table = await gateway.run('audit', '--key', 'bob');
  expect(table.code).toBe(0);
  const [header, change, creation, ...more] = table.stdout.trimEnd().split('\n');
  expect(header).toMatch(/^TIME \(UTC\) +WAY +WHO +ACTION +WHAT +RESULT +CHANGES$/);
  expect(change).toMatch(/ cli +admin\.token +key\.change +bob +done +requestsPerMinute 60 -> 10$/);
  expect(creation).toMatch(
    / cli +admin\.token +key\.create +bob +done +name bob, requestsPerMinute 60, secret sha256:/,
  );
  expect(more).toEqual([]);
  const json = await gateway.run('audit', '--action', 'key.create', '--limit', '1', '--json');
  expect(JSON.parse(json.stdout)).toMatchObject([{ number: 4, way: 'cli', subject: 'eve' }]);
  const csv = await gateway.run('audit', '--search', 'REQUESTSPERMINUTE', '--csv');
  expect(csv.stdout.split('\n').map((line) => line.split(',')[0])).toEqual(['number', '3', '2', '']);
  expect((await gateway.run('audit', '--actor', 'ada')).stdout).toBe('no lines\n');
  const refused = await gateway.run('audit', '--action', 'key.explode');
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("'action'")]);
  const backwards = await gateway.run('audit', '--from', '2030-01-02', '--to', '2030-01-01');
  expect([backwards.code, backwards.stderr]).toEqual([1, expect.stringContaining("'to'")]);
});

test('textgate audit lists more lines than a page has, each once', async () => {
  const gateway = await startCommanded();
  const first = await gateway.run('audit', '--json');
  const [line] = JSON.parse(first.stdout) as readonly PresentedAuditLine[];
  const id = String(line?.key_id);
  for (let limit = 1; limit <= 6; limit++)
    await gateway.run('keys', 'update', id, '--concurrency', `${limit}`);
  const csv = await gateway.run('audit', '--csv');
  expect(csv.stdout.trimEnd().split('\n')).toHaveLength(8);
});

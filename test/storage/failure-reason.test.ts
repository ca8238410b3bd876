import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import type { Statement } from '../../src/storage/engine.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const insert = (value: unknown): Statement => ({
  sql: 'INSERT INTO t VALUES (?)',
  values: [value] as Statement['values'],
});

async function openEngine(path: string) {
  const engine = openTestEngine(path);
  onTestFinished(() => engine.close());
  await engine.run([{ sql: 'CREATE TABLE t (a INTEGER NOT NULL CHECK (a > 0))', values: [] }]);
  return engine;
}

test.each([
  ['violates a constraint', 0],
  ['lacks a value', null],
  ['has a value that can’t be bound', undefined],
])('a unit that %s is rejected for good', async (_name, value) => {
  const engine = await openEngine(':memory:');
  await expect(engine.run([insert(value)])).rejects.toMatchObject({ reason: 'rejected', isPermanent: true });
});

test('a unit that meets the lock of another process fails for now', async () => {
  const path = join(makeTemporaryFolder(), 'textgate.db');
  const engine = await openEngine(path);
  const other = new DatabaseSync(path);
  other.exec('BEGIN IMMEDIATE');
  await expect(engine.run([insert(1)])).rejects.toMatchObject({ reason: 'locked', isPermanent: false });
  other.close();
}, 120_000);

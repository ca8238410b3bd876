import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { fillDatabase } from '../support/filled-database.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/operators/container.md'), 'utf8');

test('the command that restores a backup in a container takes it from the standard input, by the rules of every restore', async () => {
  const [, args = ''] = /-v textgate:\/app\/data textgate (restore [^`]*) < backup\.db`/.exec(page) ?? [];
  expect(args).not.toBe('');
  const folder = makeTemporaryFolder();
  const backup = join(folder, 'backup.db');
  const engine = openTestEngine(backup);
  await engine.ready;
  await engine.close();
  fillDatabase(backup, { keys: 3, records: 7 });
  mkdirSync(join(folder, 'data'));
  const run = (input: Buffer) =>
    spawnSync(process.execPath, [join(root, 'src/main.ts'), ...args.split(' ')], { cwd: folder, input });
  const content = readFileSync(backup);
  const restored = run(content);
  expect([restored.status, restored.stderr.toString()]).toEqual([0, '']);
  expect(restored.stdout.toString()).toContain(
    'data/textgate.db is restored from the standard input: 3 keys, 7 records, checked',
  );
  const file = join(folder, 'data', 'textgate.db');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const database = new DatabaseSync(file);
  const [records] = database.prepare('SELECT count(*) AS count FROM record_rows').all();
  const lines = database.prepare('SELECT way, action, result FROM audit_lines').all();
  database.close();
  expect([records?.['count'], lines.map(({ way, action, result }) => [way, action, result])]).toEqual([
    7,
    [['cli', 'database.restore', 'done']],
  ]);
  const refused = run(content.subarray(0, content.length / 2));
  expect([refused.status, refused.stderr.toString()]).toEqual([
    1,
    expect.stringContaining("the standard input can't be restored"),
  ]);
  expect(readdirSync(join(folder, 'data'))).toEqual(['textgate.db', 'textgate.db-owner']);
});

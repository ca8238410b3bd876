import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/operators/container.md'), 'utf8');

test('the command that restores a backup in a container replaces what is in the file, and not the file', () => {
  const [, script = ''] = /--entrypoint node textgate -e "([^"]+)" < backup\.db/.exec(page) ?? [];
  const folder = makeTemporaryFolder();
  mkdirSync(join(folder, 'data'));
  const file = join(folder, 'data', 'textgate.db');
  for (const name of ['', '-wal', '-shm', '-settlements']) writeFileSync(file + name, 'before, and longer');
  chmodSync(file, 0o600);
  const { ino } = statSync(file);
  const { status, stderr } = spawnSync(process.execPath, ['-e', script], {
    cwd: folder,
    input: 'the backup',
  });
  expect([status, stderr.toString()]).toEqual([0, '']);
  expect(readFileSync(file, 'utf8')).toBe('the backup');
  // With the file, its owner and mode would be new.
  expect(statSync(file)).toMatchObject({ ino, mode: 0o100600 });
  expect(readdirSync(join(folder, 'data'))).toEqual(['textgate.db', 'textgate.db-settlements']);
});

import { chmodSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeNewFile } from '../../src/storage/sqlite/writer-connection.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';

test('the start makes the files of a database private that others can read, and logs one line', async () => {
  const folder = makeTemporaryFolder();
  const storage = join(folder, 'textgate.db');
  makeNewFile(storage, storage);
  writeFileSync(`${storage}-settlements`, '');
  chmodSync(storage, 0o644);
  chmodSync(`${storage}-settlements`, 0o666);
  chmodSync(folder, 0o755);
  let log = '';
  const logDestination = { write: (line: string) => void (log += line) };
  const gateway = await startGateway({ storage, logDestination });
  const modeOf = (path: string) => statSync(path).mode & 0o777;
  for (const end of ['', '-wal', '-shm', '-owner', '-settlements']) expect(modeOf(storage + end)).toBe(0o600);
  expect(modeOf(folder)).toBe(0o755);
  expect(log.match(/were readable by other users/g)).toHaveLength(1);
  await gateway.close();
});

test('a database behind a symlink has all its files beside the real one, and all are made private', async () => {
  const [folder, links] = [makeTemporaryFolder(), makeTemporaryFolder()];
  const storage = join(folder, 'textgate.db');
  makeNewFile(storage, storage);
  writeFileSync(`${storage}-settlements`, '');
  for (const end of ['', '-settlements']) chmodSync(storage + end, 0o644);
  symlinkSync(storage, join(links, 'link.db'));
  const gateway = await startGateway({ storage: join(links, 'link.db') });
  for (const end of ['', '-wal', '-shm', '-owner', '-settlements'])
    expect(statSync(storage + end).mode & 0o777).toBe(0o600);
  expect(readdirSync(links)).toEqual(['link.db']);
  await gateway.close();
});

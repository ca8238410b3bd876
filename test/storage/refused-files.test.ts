import {
  copyFileSync,
  existsSync,
  lstatSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, test } from 'vitest';
import { markMoved } from '../../src/storage/sqlite/check-file.ts';
import { fillDatabase } from '../support/filled-database.ts';
import { canMount, mountSmallDisk } from '../support/small-disk.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openThreadedEngine } from '../support/test-engine.ts';

let path: string;
beforeEach(() => {
  path = join(makeTemporaryFolder(), 'textgate.db');
});

/** Why the engine does not open the file. */
async function refusal(): Promise<string> {
  const engine = openThreadedEngine(path);
  const reason = await engine.ready.then(
    () => 'it opens',
    ({ message }: Error) => message,
  );
  await engine.close().catch(() => {});
  return reason;
}

async function makeDatabase(records: number): Promise<void> {
  const engine = openThreadedEngine(path);
  await engine.ready;
  await engine.close();
  fillDatabase(path, { keys: 2, records });
}

describe('a start is refused, and the file stays as it is,', () => {
  test.each([
    ['its pages', 16_384],
    ['its header', 0],
  ])('on a database with damage in %s, with the command that restores a backup', async (_where, at) => {
    await makeDatabase(500);
    const content = readFileSync(path);
    content.fill(0xff, at, at + 8_192);
    writeFileSync(path, content);
    expect(await refusal()).toMatch(
      new RegExp(`can't be opened: it is damaged: .*\\n  textgate restore BACKUP --to ${path}$`, 's'),
    );
    expect(readFileSync(path).equals(content)).toBe(true);
  });

  test('on one whose end is missing', async () => {
    await makeDatabase(500);
    const content = readFileSync(path);
    writeFileSync(path, content.subarray(0, content.length / 2));
    expect(await refusal()).toContain('it is damaged');
  });

  test.each([
    ['its own tables', 'CREATE TABLE songs (a); CREATE TABLE artists (a)'],
    [
      'a table of migrations as well',
      'CREATE TABLE songs (a); CREATE TABLE migrations (number, name, checksum)',
    ],
  ])('on a database of another program with %s', async (_what, sql) => {
    const other = new DatabaseSync(path);
    other.exec(sql);
    other.close();
    const content = readFileSync(path);
    expect(await refusal()).toMatch(
      /a database of another program, with the tables songs.*Set storage.url to/,
    );
    expect(readFileSync(path).equals(content)).toBe(true);
  });

  test('on an empty file, which would be taken for a new database without the keys and balances', async () => {
    writeFileSync(path, '');
    expect(await refusal()).toMatch(
      new RegExp(
        `its file is empty \\(0 bytes\\)\\..*\\n  textgate restore BACKUP --to ${path}\\n.*remove ${path}`,
        's',
      ),
    );
    expect(statSync(path).size).toBe(0);
    rmSync(path);
    expect(await refusal()).toBe('it opens');
  });

  test('where the file of a database that was killed is gone, and only its log is left', async () => {
    await makeDatabase(1);
    const writer = new DatabaseSync(path);
    writer.exec('PRAGMA wal_autocheckpoint = 0; CREATE TABLE more (a)');
    const log = readFileSync(`${path}-wal`);
    writer.close();
    rmSync(path);
    writeFileSync(`${path}-wal`, log);
    expect(await refusal()).toContain('its file is gone, and only its log is there');
    expect(readFileSync(`${path}-wal`).equals(log)).toBe(true);
    expect(existsSync(path)).toBe(false);
  });

  const mounting = canMount() ? '' : ' (needs the right to mount one)';
  test.skipIf(!canMount()).each([
    ['full', 'its disk is full: free some space', 'fill', 'free'],
    ['read-only', 'it is read-only: make the file and its folder writable', 'forbidWrites', 'allowWrites'],
  ] as const)(
    `on a disk that is %s, and the next one opens it${mounting}`,
    async (_how, cause, begin, end) => {
      const disk = mountSmallDisk();
      path = join(disk.folder, 'textgate.db');
      await makeDatabase(1);
      disk[begin]();
      expect(await refusal()).toContain(cause);
      disk[end]();
      expect(await refusal()).toBe('it opens');
    },
  );

  test('on a text file', async () => {
    writeFileSync(path, 'no database '.repeat(1_000));
    expect(await refusal()).toContain('it is damaged: file is not a database');
  });
});

test('a database that was moved is refused with its target, until that is allowed', async () => {
  await makeDatabase(1);
  const engine = openThreadedEngine(path);
  await engine.run(markMoved('postgres://textgate@db.example.com/textgate', Date.UTC(2027, 0, 31)));
  await engine.close();
  copyFileSync(path, `${path}.before`);
  expect(await refusal()).toMatch(
    /copied to postgres:\/\/textgate@db\.example\.com\/textgate on 2027-01-31\. Set storage\.url.*two ledgers.*allowMigrated/,
  );
  expect(readFileSync(path).equals(readFileSync(`${path}.before`))).toBe(true);
  const allowed = openThreadedEngine(path, { allowMigrated: true });
  await allowed.ready;
  await allowed.close();
});

test('a start that never opened the database leaves no file, so that the next one makes it', async () => {
  const lock = new DatabaseSync(`${path}-owner`);
  lock.exec('BEGIN EXCLUSIVE');
  expect(await refusal()).toContain('another textgate process is using it');
  lock.close();
  expect(readdirSync(dirname(path))).toEqual(['textgate.db-owner']);
  expect(await refusal()).toBe('it opens');
});

test('a database is made where a symlink leads, in a folder that is there, and no symlink leads to itself', async () => {
  const target = join(makeTemporaryFolder(), 'target.db');
  symlinkSync(target, path);
  expect(await refusal()).toBe('it opens');
  expect([statSync(target).mode & 0o777, lstatSync(path).isSymbolicLink()]).toEqual([0o600, true]);
  const away = join(dirname(path), 'away.db');
  symlinkSync(join(dirname(target), 'unmounted', 'target.db'), away);
  expect(() => openThreadedEngine(away)).toThrow('ENOENT');
  const loop = join(dirname(path), 'loop.db');
  symlinkSync(loop, loop);
  expect(() => openThreadedEngine(loop)).toThrow('ELOOP');
});

test('a start that ended between its first two steps is gone on with by the next one', async () => {
  const first = new DatabaseSync(path);
  first.exec(
    'CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)',
  );
  first.close();
  expect(await refusal()).toBe('it opens');
});

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, test } from 'vitest';
import { markMoved } from '../../src/storage/move/move-mark.ts';
import { fillDatabase } from '../support/filled-database.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';

let path: string;
beforeEach(() => {
  path = join(makeTemporaryFolder(), 'textgate.db');
});

/** Why the engine does not open the file. */
async function refusal(): Promise<string> {
  const engine = openTestEngine(path);
  const reason = await engine.ready.then(
    () => 'it opens',
    ({ message }: Error) => message,
  );
  await engine.close().catch(() => {});
  return reason;
}

async function makeDatabase(records: number): Promise<void> {
  const engine = openTestEngine(path);
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

  test('on a text file', async () => {
    writeFileSync(path, 'no database '.repeat(1_000));
    expect(await refusal()).toContain('it is damaged: file is not a database');
  });
});

test('a database that was moved is refused with its target, until that is allowed', async () => {
  await makeDatabase(1);
  const engine = openTestEngine(path);
  await engine.run(markMoved('postgres://textgate@db.example.com/textgate', Date.UTC(2027, 0, 31)));
  await engine.close();
  copyFileSync(path, `${path}.before`);
  expect(await refusal()).toMatch(
    /copied to postgres:\/\/textgate@db\.example\.com\/textgate on 2027-01-31\. Set storage\.url.*two ledgers.*allowMigrated/,
  );
  expect(readFileSync(path).equals(readFileSync(`${path}.before`))).toBe(true);
  const allowed = openTestEngine(path, { allowMigrated: true });
  await allowed.ready;
  await allowed.close();
});

test('a start that ended between its first two steps is gone on with by the next one', async () => {
  const first = new DatabaseSync(path);
  first.exec(
    'CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)',
  );
  first.close();
  expect(await refusal()).toBe('it opens');
});

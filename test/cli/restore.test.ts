import {
  chownSync,
  copyFileSync,
  existsSync,
  lstatSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, test } from 'vitest';
import { restore } from '../../src/cli/database/restore.ts';
import { markMoved } from '../../src/storage/sqlite/check-file.ts';
import { fillDatabase } from '../support/filled-database.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { runCommand } from '../support/run-command.ts';

let folder: string;
let database: string;
let backup: string;
beforeEach(async () => {
  folder = makeTemporaryFolder();
  database = join(folder, 'textgate.db');
  backup = join(folder, 'backup.db');
  await make(backup, 7);
  await make(database, 20);
});

/** The bytes of databases with so many records, which are made once. */
const made = new Map<number, Buffer>();

/** Makes a database, without its lock file, as a backup has none. */
async function make(path: string, records: number): Promise<void> {
  const bytes = made.get(records) ?? (await makeDatabase(records));
  made.set(records, bytes);
  writeFileSync(path, bytes, { mode: 0o600 });
}

async function makeDatabase(records: number): Promise<Buffer> {
  const file = join(makeTemporaryFolder(), 'made.db');
  const engine = openTestEngine(file);
  await engine.ready;
  await engine.close();
  fillDatabase(file, { keys: 3, records });
  return readFileSync(file);
}

function recordsIn(path: string): unknown {
  const opened = new DatabaseSync(path);
  try {
    return opened.prepare('SELECT count(*) AS count FROM records').get()?.['count'];
  } finally {
    opened.close();
  }
}

const keptFiles = (): readonly string[] =>
  readdirSync(folder).filter((name) => name.includes('.before-restore-'));

describe('textgate restore', () => {
  test('puts the backup in the place of the database, and keeps the file that was there', async () => {
    const words = await restore(backup, { to: database });
    expect(words).toContain(`${database} is restored from ${backup}: 3 keys, 7 records, checked`);
    expect(recordsIn(database)).toBe(7);
    expect([statSync(database).mode & 0o777, statSync(database).nlink]).toEqual([0o600, 1]);
    const [kept = ''] = keptFiles();
    expect(kept).toMatch(/^textgate\.db\.before-restore-\d{8}T\d{6}Z$/);
    expect(recordsIn(join(folder, kept))).toBe(20);
    expect(readFileSync(backup).length).toBeGreaterThan(0);
    const engine = openTestEngine(database);
    await engine.ready;
    await engine.close();
  });

  test('keeps the log of a killed gateway with its file, and leaves none beside the backup', async () => {
    const writer = new DatabaseSync(database);
    writer.exec(`PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
      DROP TRIGGER charge_is_kept_without_its_record; DELETE FROM record_rows`);
    for (const end of ['', '-wal']) copyFileSync(database + end, join(folder, `killed.db${end}`));
    writer.close();
    const killed = join(folder, 'killed.db');
    await restore(backup, { to: killed });
    expect(existsSync(`${killed}-wal`)).toBe(false);
    expect(recordsIn(killed)).toBe(7);
    const kept = keptFiles().find((name) => !name.endsWith('-wal')) ?? '';
    await restore(join(folder, kept), { to: killed });
    expect(recordsIn(killed)).toBe(0);
  });

  test.skipIf(process.getuid?.() !== 0)(
    'gives what root restores to the owner of the folder, the lock file too (needs root)',
    async () => {
      chownSync(folder, 1_234, 1_234);
      const restored = join(folder, 'new.db');
      await restore(backup, { to: restored });
      for (const end of ['', '-owner']) expect(statSync(restored + end).uid).toBe(1_234);
    },
  );

  test('restores behind a link whose file is gone, and leaves the link', async () => {
    const [real, link] = [join(folder, 'volume.db'), join(folder, 'link.db')];
    symlinkSync(real, link);
    await restore(backup, { to: link });
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(existsSync(`${real}-owner`)).toBe(true);
    expect(recordsIn(real)).toBe(7);
  });

  test('restores in the place of a damaged file, and where there is none', async () => {
    writeFileSync(database, 'no database '.repeat(1_000));
    await restore(backup, { to: database });
    expect(recordsIn(database)).toBe(7);
    const elsewhere = join(folder, 'new.db');
    expect(await restore(backup, { to: elsewhere })).not.toContain('kept');
    expect(recordsIn(elsewhere)).toBe(7);
  });

  test.each([
    ['a damaged file', (content: Buffer) => content.fill(0xff, 8_192, 24_576), 'error code 11'],
    ['half of a file', (content: Buffer) => content.subarray(0, content.length / 2), 'malformed'],
    ['a text', () => Buffer.from('no database'), 'not a database'],
    ['an empty file', () => Buffer.alloc(0), 'no such table'],
  ])('refuses %s, and changes nothing', async (_what, change, reason) => {
    writeFileSync(backup, change(readFileSync(backup)));
    const before = readFileSync(database);
    await expect(restore(backup, { to: database })).rejects.toThrow(
      new RegExp(`${backup} can't be restored: .*${reason}`, 's'),
    );
    expect(readFileSync(database).equals(before)).toBe(true);
    expect(readdirSync(folder).toSorted()).toEqual(['backup.db', 'textgate.db', 'textgate.db-owner']);
  });

  test('refuses while a gateway uses the database, and the file of another gateway', async () => {
    const engine = openTestEngine(database);
    await engine.ready;
    await expect(restore(backup, { to: database })).rejects.toThrow('another textgate process is using it');
    await expect(restore(database, { to: join(folder, 'new.db') })).rejects.toThrow(
      'belongs to the database',
    );
    await engine.close();
    expect(recordsIn(database)).toBe(20);
  });

  test('refuses to remove the mark of a database that was copied to PostgreSQL, unless that is allowed', async () => {
    const move = markMoved('postgres://textgate@db.example.com/textgate', Date.UTC(2027, 0, 31));
    const engine = openTestEngine(database);
    await engine.run(move);
    await engine.close();
    const before = readFileSync(database);
    const files = readdirSync(folder);
    await expect(restore(backup, { to: database })).rejects.toThrow(
      /is not replaced: it was copied to postgres:\/\/textgate@db\.example\.com\/textgate on 2027-01-31\. .*--allow-migrated/,
    );
    expect(readFileSync(database).equals(before)).toBe(true);
    expect(readdirSync(folder)).toEqual(files);
    await restore(backup, { to: database, allowMigrated: true });
    expect(recordsIn(database)).toBe(7);
    // The other way round: the backup has the mark, and keeps it.
    const [kept = ''] = keptFiles();
    await expect(restore(join(folder, kept), { to: database })).rejects.toThrow('it was copied to');
    await restore(join(folder, kept), { to: database, allowMigrated: true });
    expect(recordsIn(database)).toBe(20);
  });

  test('finds the mark of a copy that is still in the log of its database', async () => {
    const writer = new DatabaseSync(database);
    writer.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0');
    writer.exec("CREATE TABLE moved_to (target, moved_at); INSERT INTO moved_to VALUES ('postgres://db', 0)");
    for (const end of ['', '-wal']) copyFileSync(database + end, join(folder, `killed.db${end}`));
    writer.close();
    await expect(restore(backup, { to: join(folder, 'killed.db') })).rejects.toThrow(
      'copied to postgres://db',
    );
  });

  test('finds the database as a gateway does, by the config or the environment, and refuses others', async () => {
    const config = join(folder, 'textgate.yaml');
    const run = (args: readonly string[], environment = {}) =>
      runCommand(['restore', ...args], folder, environment);
    writeFileSync(config, 'storage: { url: "sqlite:textgate.db" }\nmodels: { broken: 1 }\n');
    expect(await run(['backup.db', '--config', config])).toMatchObject({ code: 0, stderr: '' });
    expect(recordsIn(database)).toBe(7);
    const unnamed = (await run(['backup.db'])).stdout.replaceAll(/\s+/g, ' ');
    expect(unnamed).toContain(
      'Neither an option nor TEXTGATE_CONFIG or TEXTGATE_STORAGE_URL names the database',
    );
    expect(unnamed).toContain(`the usual one, ${join(folder, 'data', 'textgate.db')}`);
    const named = { TEXTGATE_STORAGE_URL: 'sqlite:named.db' };
    expect((await run(['backup.db'], named)).stdout).not.toContain('the usual one');
    expect((await run(['backup.db'], named)).stdout).toContain('named.db is restored');
    writeFileSync(config, 'storage: { url: "postgres://textgate@127.0.0.1/textgate" }\n');
    expect(await run(['backup.db', '--config', config])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('on a PostgreSQL server') as string,
    });
  });
});

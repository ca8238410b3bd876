import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  linkSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Engine, Statement } from '../../src/storage/engine.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openThreadedEngine } from '../support/test-engine.ts';

/** How soon a fault of the files has to be known, in milliseconds. */
const toldWithinMs = 15_000;

const say = (sql: string, ...values: Statement['values']): Statement => ({ sql, values });
const insert = (value: number): Statement => say('INSERT INTO t VALUES (?)', value);

interface Opened {
  readonly path: string;
  readonly engine: Engine;
  readonly clock: FakeClock;
  readonly faults: string[];
}

/** A database with one row, of which not all is in its file yet. */
async function open(path = join(makeTemporaryFolder(), 'data', 'textgate.db')): Promise<Opened> {
  const clock = createFakeClock();
  const faults: string[] = [];
  const onFault = (message: string, error: unknown): void => void faults.push(`${message}: ${String(error)}`);
  const engine = openThreadedEngine(path, { clock, onFault });
  onTestFinished(() => engine.close().catch(() => {}));
  await engine.ready;
  await engine.run([say('CREATE TABLE IF NOT EXISTS t (a INTEGER)'), insert(1)]);
  return { path, engine, clock, faults };
}

/** The rows in a file, opened as the next process would. */
function rowsIn(path: string): readonly unknown[] {
  const database = new DatabaseSync(path);
  try {
    expect(database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    return database
      .prepare('SELECT a FROM t ORDER BY a')
      .all()
      .map(({ a }) => a);
  } finally {
    database.close();
  }
}

/** Turns the clock until a fault must be known. */
async function turn(clock: FakeClock, faults: readonly string[]): Promise<void> {
  for (let passedMs = 0; passedMs < toldWithinMs; passedMs += 1_000) {
    clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await eventually('a fault was told', () => faults.length > 0);
}

test('the engine refuses a database file with a second name, under which another process could lock it', async () => {
  const { path, engine } = await open();
  await engine.close();
  linkSync(path, `${path}-other`);
  for (const name of [path, `${path}-other`]) {
    const refused = openThreadedEngine(name);
    await expect(refused.ready).rejects.toThrow('hard link');
    await refused.close();
  }
});

describe('a database that is open', () => {
  test.each([
    ['a symlink', (path: string) => linkTo(path)],
    ['a relative path', (path: string) => relative(process.cwd(), path)],
    ['a symlink to its folder', (path: string) => join(linkTo(dirname(path)), basename(path))],
  ])('is not opened a second time by %s', async (_name, otherName) => {
    const { path } = await open();
    const second = openThreadedEngine(otherName(path));
    await expect(second.ready).rejects.toThrow('another textgate process is using it');
    await second.close();
  });

  test('is not impaired while its files stay: no fault is reported', async () => {
    const { engine, clock, faults } = await open();
    for (let look = 0; look < 10; look++) {
      clock.advance(2_000);
      await engine.read([say('SELECT 1')]);
    }
    expect(faults).toEqual([]);
    expect(engine.impaired).toBeNull();
  });

  test.each([
    ['deleted', (file: string) => rmSync(file)],
    ['replaced', (file: string) => (rmSync(file), writeFileSync(file, ''))],
  ])('is locked again when its lock file was %s', async (_how, change) => {
    const { path, engine, clock, faults } = await open();
    change(`${path}-owner`);
    await turn(clock, faults);
    expect(faults[0]).toContain('the lock file of the database was deleted or replaced');
    await eventually('it is locked', () => engine.impaired === null);
    const second = openThreadedEngine(path);
    await expect(second.ready).rejects.toThrow('another textgate process is using it');
    await second.close();
    expect(faults).toHaveLength(1);
  });

  test('is lost when its lock file was deleted and another process has locked the next one', async () => {
    const { path, engine, clock, faults } = await open();
    rmSync(`${path}-owner`);
    const other = new DatabaseSync(`${path}-owner`);
    onTestFinished(() => other.close());
    other.exec('BEGIN EXCLUSIVE');
    clock.advance(2_000);
    expect((await engine.lost).message).toContain('another textgate process is using it');
    expect(engine.impaired).not.toBeNull();
    expect(faults).toHaveLength(2);
  });
});

test('the engine reports a lock file that can not be used as such, not as another process', async () => {
  const path = join(makeTemporaryFolder(), 'textgate.db');
  writeFileSync(`${path}-owner`, 'no database '.repeat(500));
  const engine = openThreadedEngine(path);
  await expect(engine.ready).rejects.toThrow('file is not a database');
  await engine.close();
});

describe('a database in a folder whose name has characters with a meaning in URLs', () => {
  const inOddFolder = (): string => join(makeTemporaryFolder(), 'a%41b?c#d', 'textgate.db');

  test('can be backed up', async () => {
    const { engine } = await open(inOddFolder());
    const copy = await engine.copy();
    expect(copy?.bytes).toBeGreaterThan(0);
    await copy?.remove();
  });

  test('can be written back', async () => {
    const { path, engine } = await open(inOddFolder());
    rmSync(dirname(path), { recursive: true });
    await engine.close();
    expect(rowsIn(path)).toEqual([1]);
  });
});

describe('a database whose file goes away', () => {
  test.each([
    ['the file', (path: string) => rmSync(path)],
    ['the file and its log', (path: string) => (rmSync(path), rmSync(`${path}-wal`), rmSync(`${path}-shm`))],
    ['its folder', (path: string) => rmSync(dirname(path), { recursive: true })],
  ])('is written back at the close, with what came later: %s was deleted', async (_what, remove) => {
    const { path, engine, clock, faults } = await open();
    remove(path);
    await turn(clock, faults);
    expect((await engine.lost).message).toContain(path);
    expect(engine.impaired).toBe('the database file was deleted while it was open');
    await engine.run([insert(2)]);
    expect((await engine.read([say('SELECT count(*) AS n FROM t')]))[0]?.[0]).toMatchObject({ n: 2 });
    await engine.close();
    expect(faults.at(-1)).toContain(`the database was written back to the disk: ${path}`);
    expect(rowsIn(path)).toEqual([1, 2]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(path)).filter((name) => name.includes('rescued'))).toEqual([]);
    const { engine: next } = await open(path);
    await next.close();
    expect(rowsIn(path)).toEqual([1, 1, 2]);
  });

  test('is written back when the file goes away just before the close', async () => {
    const { path, engine } = await open();
    rmSync(dirname(path), { recursive: true });
    await engine.close();
    expect(rowsIn(path)).toEqual([1]);
  });

  test('is written beside the file that took its place, which stays as it is', async () => {
    const { path, engine, clock, faults } = await open();
    const replacement = join(dirname(path), 'other.db');
    const other = new DatabaseSync(replacement);
    other.exec('CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (77)');
    other.close();
    renameSync(replacement, path);
    await turn(clock, faults);
    await engine.lost;
    expect(engine.impaired).toBe('the database file was replaced while it was open');
    await engine.run([insert(2)]);
    await engine.close();
    expect(existsSync(`${path}-wal`)).toBe(false);
    expect(rowsIn(path)).toEqual([77]);
    const rescued = readdirSync(dirname(path)).find((name) => name.includes('.rescued-')) ?? '';
    expect(rescued).toMatch(/^textgate\.db\.rescued-\d{8}T\d{6}Z$/);
    expect(faults.at(-1)).toContain(rescued);
    expect(rowsIn(join(dirname(path), rescued))).toEqual([1, 2]);
  });

  test('has to be closed when only its log was deleted, and keeps all rows', async () => {
    const { path, engine, clock, faults } = await open();
    rmSync(`${path}-wal`);
    await turn(clock, faults);
    await engine.lost;
    expect(engine.impaired).toBe('the write-ahead log of the database was deleted while it was open');
    await engine.run([insert(2)]);
    await engine.close();
    expect(rowsIn(path)).toEqual([1, 2]);
  });
});

/** Another name for a file or folder. */
function linkTo(path: string): string {
  const link = join(makeTemporaryFolder(), 'link');
  symlinkSync(path, link);
  return link;
}

describe('a database whose file is changed while it is open', () => {
  /** A copy of the database, as a backup has it. */
  async function backup({ engine }: Opened): Promise<string> {
    const target = join(makeTemporaryFolder(), 'backup.db');
    const copy = await engine.copy();
    await writeFile(target, copy?.read() ?? '');
    await copy?.remove();
    return target;
  }
  const manyUnits = 250;

  test.each(['a backup', 'an older file', 'another file', 'nothing', 'half of itself'])(
    'is lost when %s is copied over it, and what is there stays as it is',
    async (what) => {
      const opened = await open();
      const { path, engine, clock, faults } = opened;
      const backedUp = await backup(opened);
      const older = readFileSync(path);
      // Enough for the log to be folded into the file, which grows.
      for (let unit = 0; unit < manyUnits; unit++)
        await engine.run([say('INSERT INTO t VALUES (zeroblob(3000))')]);
      const contents: Readonly<Record<string, Buffer>> = {
        'a backup': readFileSync(backedUp),
        'an older file': older,
        'another file': Buffer.from('no database '.repeat(5_000)),
        nothing: Buffer.alloc(0),
        'half of itself': readFileSync(path).subarray(0, 8_192),
      };
      const content = contents[what] ?? Buffer.alloc(0);
      writeFileSync(path, content);
      await turn(clock, faults);
      expect((await engine.lost).message).toContain(path);
      expect(engine.impaired).toBe('the database file was overwritten while it was open');
      await expect(engine.run([insert(2)])).rejects.toMatchObject({ reason: 'damaged' });
      await engine.close();
      expect(readFileSync(path).equals(content)).toBe(true);
      const beside = readdirSync(dirname(path)).filter((name) => name.startsWith('textgate.db-wal'));
      expect(beside).toEqual([expect.stringMatching(/^textgate\.db-wal\.overwritten-\d{8}T\d{6}Z$/)]);
    },
  );

  test('is found before its log is folded into it: the copy is not mixed with the log, without any look', async () => {
    const opened = await open();
    const { path, engine, faults } = opened;
    const content = readFileSync(await backup(opened));
    writeFileSync(path, content);
    let failed = 0;
    for (let unit = 0; unit < manyUnits; unit++) await engine.run([insert(unit)]).catch(() => failed++);
    expect(failed).toBeGreaterThan(0);
    expect(faults[0]).toContain('overwritten');
    await engine.close();
    expect(readFileSync(path).equals(content)).toBe(true);
  });

  test('is not written at the close when it was overwritten right before', async () => {
    const opened = await open();
    const { path, engine } = opened;
    const content = readFileSync(await backup(opened));
    await engine.run([insert(2)]);
    writeFileSync(path, content);
    await engine.close();
    expect(rowsIn(path)).toEqual([1]);
  });

  test('is checked when it was only touched, and goes on', async () => {
    const { path, engine, clock, faults } = await open();
    utimesSync(path, new Date(0), new Date(0));
    await turn(clock, faults);
    expect(faults[0]).toContain('the database file was written by another program');
    await eventually('it is checked', () => engine.impaired === null);
    for (let unit = 0; unit < manyUnits; unit++) await engine.run([insert(unit)]);
    await engine.close();
    expect(faults).toHaveLength(1);
    expect(rowsIn(path)).toHaveLength(manyUnits + 1);
  });

  test('goes on beside another program that writes rows, folds the log and makes the file smaller', async () => {
    const { path, engine, clock, faults } = await open();
    const other = new DatabaseSync(path);
    onTestFinished(() => {
      if (other.isOpen) other.close();
    });
    for (const sql of [
      'DELETE FROM t',
      'INSERT INTO t VALUES (77)',
      'VACUUM',
      'PRAGMA wal_checkpoint(TRUNCATE)',
    ]) {
      other.exec(sql);
      clock.advance(1_000);
      await engine.run([insert(1)]);
    }
    other.close();
    await turn(clock, ['']);
    await eventually('it is checked', () => engine.impaired === null);
    await engine.close();
    expect(faults.filter((fault) => !fault.includes('written by another program'))).toEqual([]);
    expect(rowsIn(path)).toEqual([1, 1, 1, 1, 77]);
  });

  test('is lost when a part of it was destroyed', async () => {
    const { path, engine, clock, faults } = await open();
    for (let unit = 0; unit < manyUnits; unit++)
      await engine.run([say('INSERT INTO t VALUES (zeroblob(3000))')]);
    const file = openSync(path, 'r+');
    writeSync(file, Buffer.alloc(65_536, 0xff), 0, 65_536, 8_192);
    closeSync(file);
    await turn(clock, faults);
    expect((await engine.lost).message).toContain('textgate restore BACKUP --to');
    expect(engine.impaired).toBe('the database is damaged');
  });

  test('is not taken for changed while backups are made and its log is folded', async () => {
    const opened = await open();
    const { engine, clock, faults } = opened;
    for (let unit = 0; unit < 4 * manyUnits; unit++) {
      if (unit % manyUnits === 100) await backup(opened);
      await engine.run([say('INSERT INTO t VALUES (zeroblob(3000))')]);
      clock.advance(500);
    }
    expect(faults).toEqual([]);
    expect(engine.impaired).toBeNull();
  });
});

test('the log of a database grows while another program reads it, is reported with its process id, and shrinks after', async () => {
  const { path, engine, clock, faults } = await open();
  const reader = spawn(process.execPath, [
    '-e',
    `const { DatabaseSync } = require('node:sqlite');
     const database = new DatabaseSync(${JSON.stringify(path)}, { readOnly: true });
     database.exec('BEGIN'); database.prepare('SELECT count(*) FROM t').get();
     console.log('reads'); setInterval(() => {}, 1000);`,
  ]);
  const ended = once(reader, 'exit');
  onTestFinished(() => void reader.kill());
  await once(reader.stdout, 'data');
  const large = say('INSERT INTO t VALUES (zeroblob(1000000))');
  for (let unit = 0; unit < 70; unit++) await engine.run([large]);
  await turn(clock, faults);
  expect(faults).toEqual([
    expect.stringContaining(`another program reads the database (process id ${reader.pid})`),
  ]);
  expect(engine.logBytes).toBeGreaterThan(64_000_000);
  reader.kill();
  await ended;
  await eventually('the log is shorter', async () => {
    clock.advance(500);
    await engine.run([insert(1)]);
    return (engine.logBytes ?? 0) < 20_000_000;
  });
  expect(faults).toHaveLength(1);
});

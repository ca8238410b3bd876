import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import type { Migration } from '../../src/storage/migration.ts';
import { checkSource } from '../../src/storage/move/sqlite-source.ts';
import { migrate, migrations } from '../../src/storage/sqlite/schema.ts';
import { restoreDatabase } from '../../src/storage/sqlite/restore.ts';
import { fillDatabase } from '../support/filled-database.ts';
import { expectClaimsOfBefore, rowsBeforeClaimOwners } from '../support/claims-of-before.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';

/** A further step, by its place behind those of this version. */
function further(place: number, sql: string): Migration {
  return { number: migrations.length + place, name: `further step ${place}`, sql };
}

/** The steps of a later version: it keeps the colour of each key, which those that are there get. */
const laterSteps = [
  ...migrations,
  further(1, `ALTER TABLE api_keys ADD COLUMN colour TEXT; UPDATE api_keys SET colour = name || ' is green'`),
];

const keys = 3;
const records = 300;

/** A database as this version has made and used it. */
async function makeUsed(): Promise<string> {
  const file = join(makeTemporaryFolder(), 'textgate.db');
  const engine = openTestEngine(file);
  await engine.ready;
  await engine.close();
  fillDatabase(file, { keys, records });
  return file;
}

/** Opens a file without an engine. */
function open(file: string): DatabaseSync {
  const database = new DatabaseSync(file);
  onTestFinished(() => {
    if (database.isOpen) database.close();
  });
  return database;
}

/** Makes the steps of a version, as its start does. */
function start(file: string, steps: readonly Migration[]): void {
  const database = open(file);
  try {
    migrate(database, steps);
  } finally {
    database.close();
  }
}

function read(file: string, sql: string): readonly unknown[] {
  const database = open(file);
  const rows = database.prepare(sql).all();
  database.close();
  return rows;
}

const balances = 'SELECT key_id, balance, held, spent FROM accounts ORDER BY key_id';
const made = 'SELECT number, name FROM migrations ORDER BY number';
const tables = 'SELECT type, name, sql FROM sqlite_schema ORDER BY type, name';

/** The faults of the ledger, found by the audit of this version. */
async function faultsOf(file: string): Promise<readonly string[]> {
  const engine = openTestEngine(file);
  onTestFinished(() => engine.close());
  const verified = await verifyLedger(createLedgerAudit(engine));
  expect(verified).toMatchObject({ accounts: keys, records, imbalanceNanos: 0 });
  await engine.close();
  return verified.faults;
}

describe('a SQLite database that a later version starts on', () => {
  test('gets the further steps once, with its rows as they were', async () => {
    const file = await makeUsed();
    const before = read(file, balances);
    start(file, laterSteps);
    start(file, laterSteps);
    expect(read(file, made)).toMatchObject(laterSteps.map(({ number, name }) => ({ number, name })));
    expect(read(file, balances)).toEqual(before);
    expect(read(file, "SELECT colour FROM api_keys WHERE id LIKE '%2'")).toEqual([
      { colour: 'key 2 is green' },
    ]);
    const fresh = join(makeTemporaryFolder(), 'textgate.db');
    start(fresh, laterSteps);
    expect(read(fresh, tables)).toEqual(read(file, tables));
  });

  test('is restored from the backup that was made before, for this version and for the later one', async () => {
    const file = await makeUsed();
    const backup = `${file}.backup`;
    copyFileSync(file, backup);
    start(file, laterSteps);
    copyFileSync(backup, file);
    expect(await faultsOf(file)).toEqual([]);
    start(file, laterSteps);
    expect(read(file, made)).toHaveLength(laterSteps.length);
  });

  test('is refused by this version from then on', async () => {
    const file = await makeUsed();
    start(file, laterSteps);
    await expect(faultsOf(file)).rejects.toThrow(
      'the database was made by a newer version of textgate: start that version, or restore the backup from before its start',
    );
  });

  test('keeps the steps before one that fails, of which nothing is left, and goes on with it at the next start', async () => {
    const file = await makeUsed();
    const failing = further(2, 'CREATE TABLE shapes (a TEXT); INSERT INTO nowhere VALUES (1)');
    expect(() => start(file, [...laterSteps, failing])).toThrow('no such table: nowhere');
    expect(read(file, made)).toHaveLength(laterSteps.length);
    start(file, [...laterSteps, further(2, 'CREATE TABLE shapes (a TEXT)')]);
    expect(read(file, made)).toHaveLength(laterSteps.length + 1);
  });

  test('is refused by a version of which a step has another text', async () => {
    const file = await makeUsed();
    start(file, laterSteps);
    const before = readFileSync(file);
    expect(() => start(file, [...migrations, further(1, 'CREATE TABLE shapes (a TEXT)')])).toThrow(
      `step ${migrations.length + 1} of the database's schema differs from this version's`,
    );
    expect(readFileSync(file).equals(before)).toBe(true);
  });
});

test('a SQLite database from before the owners of ended claims keeps its claims, of which the ended ones have none', async () => {
  const file = join(makeTemporaryFolder(), 'textgate.db');
  start(file, migrations.slice(0, 2));
  const database = open(file);
  database.exec(rowsBeforeClaimOwners);
  database.close();
  const engine = openTestEngine(file);
  onTestFinished(() => engine.close());
  await engine.ready;
  await expectClaimsOfBefore(engine);
});

describe('a SQLite database of a development version', () => {
  const reason =
    /made by a development version of textgate.*left as it is\. Set storage\.url to another database.*textgate keys list/;

  /** A database with the steps of such a version: there were 24 of them. */
  async function makeOfDevelopment(): Promise<string> {
    const file = await makeUsed();
    const database = open(file);
    const steps = Array.from(
      { length: 24 },
      (_, at) => `(${at + 1}, 'keys and records', 'of step ${at + 1}')`,
    );
    database.exec(`DELETE FROM migrations; INSERT INTO migrations VALUES ${steps.join()}`);
    database.close();
    return file;
  }

  test('is refused at the start with what to do, and stays as it is', async () => {
    const file = await makeOfDevelopment();
    const before = readFileSync(file);
    const engine = openTestEngine(file);
    await expect(engine.ready).rejects.toThrow(reason);
    await engine.close();
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  test('is neither restored nor moved', async () => {
    const file = await makeOfDevelopment();
    const before = readFileSync(file);
    const folder = makeTemporaryFolder();
    const backup = join(folder, 'backup.db');
    copyFileSync(file, backup);
    const restored = restoreDatabase(backup, join(folder, 'textgate.db'), {
      allowMigrated: false,
      by: { way: 'cli', name: 'ada', address: null },
    });
    await expect(restored).rejects.toThrow(reason);
    expect(() => checkSource(file)).toThrow(reason);
    expect(readFileSync(file).equals(before)).toBe(true);
  });
});

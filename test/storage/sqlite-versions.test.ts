import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createMigrationTable, findPending } from '../../src/storage/migration.ts';
import { createRetention } from '../../src/storage/retention/retention-store.ts';
import { madeSteps } from '../../src/storage/sqlite/migrate.ts';
import { migrations } from '../../src/storage/sqlite/migrations.ts';
import { createStore } from '../../src/storage/store.ts';
import { fillDatabase, keyIdOf } from '../support/filled-database.ts';
import { budgetClaim, budgetedRecord, payingKey, settledBudgeted } from '../support/stored-rows.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';

/** The steps of the version before records could end. */
const earlier = stepsBefore('the end of old records');

function stepsBefore(words: string): typeof migrations {
  return migrations.slice(
    0,
    migrations.findIndex(({ name }) => name.includes(words)),
  );
}

const keys = 3;
const records = 300;
const startMs = Date.UTC(2025, 0, 1);

/** An empty database of the version before a step, which is found by words of its name. */
function makeEarlierThan(words: string): string {
  const file = join(makeTemporaryFolder(), 'textgate.db');
  const database = new DatabaseSync(file);
  database.exec(createMigrationTable());
  for (const { number, name, statements, checksum } of findPending(stepsBefore(words), new Map())) {
    for (const statement of statements) database.exec(statement);
    database.prepare('INSERT INTO migrations VALUES (?, ?, ?)').run(number, name, checksum);
  }
  database.close();
  return file;
}

/** A database as that version has made and used it. */
function makeEarlier(): string {
  const file = makeEarlierThan('the end of old records');
  fillDatabase(file, { keys, records, startMs });
  return file;
}

async function openAt(file: string) {
  const engine = openTestEngine(file);
  onTestFinished(() => engine.close());
  await engine.ready;
  const store = createStore(engine, { nextId: () => 'id', now: () => startMs, report: () => {} });
  const keyIds = Array.from({ length: keys }, (_, number) => keyIdOf(number));
  return {
    engine,
    store,
    books: async () => Object.fromEntries(await store.accounts(keyIds)),
    verified: () => verifyLedger(createLedgerAudit(engine)),
  };
}

/** Reads the balances of a file, as they are stored. */
function balancesOf(file: string): readonly unknown[] {
  const database = new DatabaseSync(file, { readOnly: true });
  const rows = database.prepare('SELECT key_id, balance, held, spent FROM accounts ORDER BY key_id').all();
  database.close();
  return rows;
}

describe('a SQLite database of the earlier version', () => {
  test('is brought up to date with the same books, and its records can then be removed', async () => {
    const file = makeEarlier();
    const before = balancesOf(file);
    const { engine, books, verified } = await openAt(file);
    expect(balancesOf(file)).toEqual(before);
    expect(await verified()).toMatchObject({ accounts: keys, records, imbalanceNanos: 0, faults: [] });
    const upgraded = await books();
    const retention = createRetention(engine);
    const read = await retention.listOldest(startMs + 200, null, 500);
    await retention.removeRecords(
      read.map(({ requestId }) => ({ requestId, isLost: false })),
      startMs + 200,
    );
    expect(await retention.foldLedgers(async () => {})).toBe(200 + keys);
    expect(await verified()).toMatchObject({ records: 100, imbalanceNanos: 0, faults: [] });
    expect(await books()).toEqual(upgraded);
  });

  test('is restored from the backup that was made before the upgrade, for that version and for this one', async () => {
    const file = makeEarlier();
    const backup = `${file}.backup`;
    copyFileSync(file, backup);
    const before = balancesOf(file);
    const { engine } = await openAt(file);
    await engine.close();
    copyFileSync(backup, file);
    const restored = new DatabaseSync(file, { readOnly: true });
    // The earlier version finds nothing to do and nothing unknown: it can go on with it.
    expect(findPending(earlier, madeSteps(restored))).toEqual([]);
    restored.close();
    expect(balancesOf(file)).toEqual(before);
    expect(await (await openAt(file)).verified()).toMatchObject({ records, faults: [] });
  });

  test('has the levels of its budgets set anew by the next charge, whatever they counted before', async () => {
    const file = makeEarlierThan('groups of keys');
    const { id, startMs: periodMs, endMs } = budgetClaim;
    const used = new DatabaseSync(file);
    used
      .prepare(
        'INSERT INTO budgets (id, period_start, period_end, spent, held, level) VALUES (?, ?, ?, 79, 0, 3)',
      )
      .run(id, periodMs, endMs);
    used.close();
    const { store } = await openAt(file);
    const level = async () => (await store.budgetPeriods([id])).get(id)?.level;
    expect(await level()).toBe(0);
    await store.createKey(payingKey, 'hash of a payer', 1_000);
    await store.open(budgetedRecord);
    await store.settle(settledBudgeted);
    expect(await level()).toBe(800);
  });

  test('is refused by that version once it is brought up to date', async () => {
    const file = makeEarlier();
    const { engine } = await openAt(file);
    await engine.close();
    const upgraded = new DatabaseSync(file, { readOnly: true });
    onTestFinished(() => upgraded.close());
    expect(() => findPending(earlier, madeSteps(upgraded))).toThrow(
      'the database was made by a newer version of textgate: start that version, or restore the backup from before its start',
    );
  });
});

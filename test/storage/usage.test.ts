import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { OpenedRecord, SettledRecord } from '../../src/domain/money/consumption.ts';
import type { UsageQuery } from '../../src/domain/ports/usage.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createMigrationTable, findPending } from '../../src/storage/migration.ts';
import { migrations } from '../../src/storage/sqlite/migrations.ts';
import { createStore } from '../../src/storage/store.ts';
import { createUsageRollups } from '../../src/storage/usage/rollup-store.ts';
import { createUsage } from '../../src/storage/usage/usage-store.ts';
import { eventually } from '../support/eventually.ts';
import { fillDatabase, keyIdOf } from '../support/filled-database.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';
import { readUsage, sumRecords } from '../support/usage-sums.ts';

const [hourMs, dayMs] = [3_600_000, 86_400_000];
const startMs = Date.UTC(2027, 4, 1);
const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

/** A store with one key, and requests of it that end at once. */
async function openStore(engine: Engine) {
  onTestFinished(() => engine.close());
  await engine.ready;
  let ids = 0;
  const store = createStore(engine, { nextId: () => `id ${++ids}`, now: () => startMs, report: () => {} });
  const addKey = (id: string): Promise<void> => store.createKey({ ...payingKey, id, name: id }, id, null);
  await addKey(payingKey.id);
  const use = async (begun: Partial<OpenedRecord>, ended: Partial<SettledRecord> = {}): Promise<void> => {
    const opened: OpenedRecord = {
      ...openedRecord,
      requestId: `req_${++ids}`,
      createdAtMs: startMs,
      ...begun,
    };
    await store.settle({
      ...settledRecord,
      requestId: opened.requestId,
      begun: beginningOf(opened),
      ...ended,
    });
  };
  return { engine, store, addKey, use, usage: createUsage(engine) };
}

const month: UsageQuery = {
  by: ['day', 'key'],
  fromMs: startMs,
  toMs: startMs + 31 * dayMs,
  where: {},
  limit: 1_000,
  after: null,
};

/** Usage beside the sums of all records that are there. */
async function compared(engine: Engine) {
  const [rows = []] = await engine.read([{ sql: 'SELECT * FROM records', values: [] }]);
  const records = new Map(rows.map((row) => [String(row['request_id']), row]));
  const found = await readUsage(createUsage(engine), month, 1_000);
  return { found, expected: sumRecords(records, month) };
}

describe('usage', () => {
  test('has sums over keys that no number holds, and refuses sums of tokens that it can not give exactly', async () => {
    const { addKey, use, usage } = await openStore(openTestEngine(':memory:'));
    for (const keyId of ['key_b', 'key_c', 'key_d']) {
      await addKey(keyId);
      await use({ keyId }, { chargeNanos: Number.MAX_SAFE_INTEGER });
    }
    const page = await usage.usage({ ...month, by: ['day'] });
    expect(page?.rows).toMatchObject([{ requests: 3, chargeNanos: 3n * BigInt(Number.MAX_SAFE_INTEGER) }]);
    const tokens = { cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 };
    const inputTokens = Number.MAX_SAFE_INTEGER;
    const usages = { ...tokens, inputTokens, totalTokens: inputTokens };
    for (const keyId of ['key_b', 'key_c']) await use({ keyId }, { chargeNanos: 0, usage: usages });
    await expect(usage.usage({ ...month, by: [] })).rejects.toThrow(RangeError);
    expect((await usage.usage({ ...month, by: ['key'] }))?.rows).toHaveLength(3);
  });

  test.each([
    '',
    'x',
    Buffer.from('{}').toString('base64url'),
    Buffer.from('[]').toString('base64url'),
    Buffer.from('["key_a"]').toString('base64url'),
    Buffer.from('[1,"key_a","more"]').toString('base64url'),
    Buffer.from(JSON.stringify([1, 'a\0'])).toString('base64url'),
    'A'.repeat(20_000),
  ])('has no page behind what is no cursor of the query: %j', async (after) => {
    const { usage } = await openStore(openTestEngine(':memory:'));
    expect(await usage.usage({ ...month, after })).toBeNull();
  });

  test('of a database of the earlier version is that of its records, and what keys spent beyond them', async () => {
    const file = join(makeTemporaryFolder(), 'textgate.db');
    const database = new DatabaseSync(file);
    database.exec(createMigrationTable());
    const earlier = migrations.slice(0, 15);
    for (const { number, name, statements, checksum } of findPending(earlier, new Map())) {
      for (const statement of statements) database.exec(statement);
      database.prepare('INSERT INTO migrations VALUES (?, ?, ?)').run(number, name, checksum);
    }
    fillDatabase(file, { keys: 2, records: 20, startMs });
    // As a fold and a removal leave it.
    database.exec(
      `PRAGMA foreign_keys = OFF; DELETE FROM records WHERE key_id = '${keyIdOf(0)}' AND created_at < ${startMs + 6}`,
    );
    database.close();
    const { engine, usage } = await openStore(openTestEngine(file));
    const { found, expected } = await compared(engine);
    expect(found).toEqual(expected);
    const before = await usage.usage({ ...month, by: ['hour', 'key', 'model'], fromMs: 0, toMs: hourMs });
    expect(before?.rows).toMatchObject([
      { startMs: 0, keyId: keyIdOf(0), model: '', requests: 0, chargeNanos: 3n * 30_000n },
    ]);
    expect(
      (await verifyLedger(createLedgerAudit(engine))).faults.filter((fault) => fault.includes('usage')),
    ).toEqual([]);
  });

  test('of a version without groups is kept, as that of no group, also where whole months were rolled up', async () => {
    const file = join(makeTemporaryFolder(), 'textgate.db');
    const database = new DatabaseSync(file);
    database.exec(createMigrationTable());
    const earlier = migrations.slice(
      0,
      migrations.findIndex((step) => step.name.includes('usage by groups')),
    );
    for (const { number, name, statements, checksum } of findPending(earlier, new Map())) {
      for (const statement of statements) database.exec(statement);
      database.prepare('INSERT INTO migrations VALUES (?, ?, ?)').run(number, name, checksum);
    }
    fillDatabase(file, { keys: 2, records: 20, startMs });
    // A month that only the rollup has: rows of its hours would be read otherwise.
    const aprilMs = Date.UTC(2027, 3);
    database.exec(
      `INSERT INTO usage_rollups VALUES ('month:key,model,upstream,outcome,tag', ${aprilMs}, '${keyIdOf(1)}', 'm', 'u', 'completed', 'search',
         7, 1, 0, 0, 2, 0, 11);
       INSERT INTO usage_periods VALUES ('month', ${aprilMs}, 'rolled', 0, 0)`,
    );
    database.close();
    const { engine, usage } = await openStore(openTestEngine(file));
    const { found, expected } = await compared(engine);
    expect(found).toEqual(expected);
    const april = { ...month, by: ['key', 'group', 'tag'], fromMs: aprilMs, toMs: startMs } as const;
    const rows = [{ keyId: keyIdOf(1), group: null, tag: 'search', requests: 7, chargeNanos: 11n }];
    expect((await usage.usage(april))?.rows).toMatchObject(rows);
    expect((await usage.usage({ ...april, where: { group: null } }))?.rows).toMatchObject(rows);
    expect((await usage.usage({ ...april, where: { group: 'team-a' } }))?.rows).toEqual([]);
  });

  test('that was changed by hand is a fault of the ledger', async () => {
    const { engine, use } = await openStore(openTestEngine(':memory:'));
    await use({}, { chargeNanos: 5, usage: null });
    await engine.run([{ sql: 'UPDATE usage_hours SET charge = charge + 2', values: [] }]);
    const { faults, imbalanceNanos } = await verifyLedger(createLedgerAudit(engine));
    expect(faults).toContain('key_a: spent 5, but its usage says 7');
    expect(imbalanceNanos).toBe(2);
  });
});

describe.skipIf(postgresAbsence !== null)(`usage on PostgreSQL${absent}`, () => {
  test('is rolled up only once all transactions have ended that may not have seen it begin', async () => {
    const { engine, use } = await openStore(await openPostgres());
    const { url } = (engine as Awaited<ReturnType<typeof openPostgres>>).database;
    await use({});
    const other = new Client({ connectionString: url });
    await other.connect();
    onTestFinished(() => other.end().catch(() => {}));
    other.on('error', () => {});
    // As a settlement that hangs behind its last statement.
    await other.query(`BEGIN; INSERT INTO records (request_id, key_id, created_at, protocol, mode, model, upstream, queued_ms,
      outcome, status, charge) VALUES ('req_slow', 'key_a', ${startMs + 5}, 'chat', 'sync', 'm', 'u', 0, 'completed', 200, 3)`);
    const rollups = createUsageRollups(engine);
    await rollups.rollUp(startMs + 3 * dayMs, setImmediate);
    const rolled = { sql: `SELECT count(*) AS count FROM usage_periods WHERE state = 'rolled'`, values: [] };
    expect(await engine.read([rolled])).toEqual([[{ count: 0 }]]);
    await other.query('COMMIT');
    // Transactions of other databases of the server count, too: those of other tests may take a while.
    await eventually('the days are rolled up', async () => {
      await rollups.rollUp(startMs + 3 * dayMs, setImmediate);
      const [[row] = []] = await engine.read([rolled]);
      return row?.['count'] === 2;
    });
    const { found, expected } = await compared(engine);
    expect(found).toEqual(expected);
    expect(expected).toMatchObject([{ requests: 2 }]);
  });

  test('is rolled up where a dump was restored whose server had more transactions', async () => {
    const { engine, use } = await openStore(await openPostgres());
    await use({});
    const begun = `INSERT INTO usage_periods (period, start, state, barrier, next_hour)
      VALUES ('day', ${startMs}, 'rolling', ${Number.MAX_SAFE_INTEGER}, ${startMs})`;
    await engine.run([{ sql: begun, values: [] }]);
    await eventually('the day is rolled up', async () => {
      await createUsageRollups(engine).rollUp(startMs + 2 * dayMs, setImmediate);
      const [[row] = []] = await engine.read([
        { sql: `SELECT state FROM usage_periods WHERE start = ${startMs}`, values: [] },
      ]);
      return row?.['state'] === 'rolled';
    });
    const { found, expected } = await compared(engine);
    expect(found).toEqual(expected);
  });

  test('is exact while many keys settle requests of past days and two processes roll them up', async () => {
    const { engine, addKey, use } = await openStore(await openPostgres());
    const keyIds = Array.from({ length: 12 }, (_, at) => `key_${at}`);
    for (const keyId of keyIds) await addKey(keyId);
    const over = new AbortController();
    const rollUp = async (): Promise<void> => {
      while (!over.signal.aborted)
        await createUsageRollups(engine, 3).rollUp(startMs + 40 * dayMs, setImmediate);
    };
    const settle = async (keyId: string, at: number): Promise<void> => {
      for (let request = 0; request < 25; request++)
        await use({ keyId, createdAtMs: startMs + ((at + request * 7) % 30) * dayMs }, { chargeNanos: 1 });
    };
    const rolling = [rollUp(), rollUp()];
    await Promise.all(keyIds.map(settle));
    over.abort();
    await Promise.all(rolling);
    const before = await compared(engine);
    expect(before.found).toEqual(before.expected);
    await createUsageRollups(engine).rollUp(startMs + 40 * dayMs, setImmediate);
    const after = await compared(engine);
    expect(after.found).toEqual(after.expected);
    expect(
      (await verifyLedger(createLedgerAudit(engine))).faults.filter((fault) => fault.includes('usage')),
    ).toEqual([]);
  });
});

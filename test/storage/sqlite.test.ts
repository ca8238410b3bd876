import { join } from 'node:path';
import { createHash, randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { migrations } from '../../src/storage/sqlite/migrations.ts';
import { createStore } from '../../src/storage/store.ts';
import { say } from '../conformance/engine.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';

const tools = { nextId: () => randomUUID(), now: () => 7, report: () => {} };

async function openEngine(path = ':memory:'): Promise<Engine> {
  const engine = openTestEngine(path);
  onTestFinished(() => engine.close());
  await engine.ready;
  return engine;
}

/** A database as a version with only the first `count` migrations left it. */
function makeOldDatabase(path: string, count: number): void {
  const database = new DatabaseSync(path);
  database.exec(
    'CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)',
  );
  for (const migration of migrations.slice(0, count)) {
    for (const statement of migration.statements) database.exec(statement);
    const checksum = createHash('sha256').update(JSON.stringify(migration)).digest('hex');
    database
      .prepare('INSERT INTO migrations VALUES (?, ?, ?)')
      .run(migration.number, migration.name, checksum);
  }
  database.close();
}

describe('the writer', () => {
  test('runs units in the order in which they were handed in, however many there are', async () => {
    const engine = await openEngine();
    await engine.run([say('CREATE TABLE t (a INTEGER)')]);
    const numbers = Array.from({ length: 2_000 }, (_, number) => number);
    await Promise.all(numbers.map((number) => engine.run([say('INSERT INTO t VALUES (?)', number)])));
    const [rows] = await engine.run([say('SELECT a FROM t ORDER BY rowid')]);
    expect(rows?.map((row) => row['a'])).toEqual(numbers);
  });

  test('commits to the file what was handed in before the close, and refuses later units', async () => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    const engine = openTestEngine(path, { durability: 'full' });
    const early = engine.run([say('CREATE TABLE t (a INTEGER)'), say('INSERT INTO t VALUES (7)')]);
    await Promise.all([early, engine.close()]);
    await expect(engine.run([say('SELECT 1')])).rejects.toThrow('closed');
    const database = new DatabaseSync(path);
    expect(database.prepare('SELECT a FROM t').all()).toMatchObject([{ a: 7 }]);
    database.close();
  });
});

describe('a database', () => {
  test('of version 7 keeps its ledger sound when its postings are counted', async () => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    makeOldDatabase(path, 7);
    const old = new DatabaseSync(path);
    old.exec(`
      INSERT INTO api_keys (id, hash, name, created_at) VALUES ('key_a', 'h', 'old', 5);
      INSERT INTO accounts (key_id, balance, held, spent) VALUES ('key_a', 3, 2, 1);
      INSERT INTO records (request_id, key_id, created_at, protocol, mode, model, upstream, queued_ms, hold)
        VALUES ('req_open', 'key_a', 6, 'chat', 'sync', 'm', 'u', 0, 2);
      INSERT INTO ledger (key_id, created_at, kind, delta, posting) VALUES ('key_a', 5, 'credit', 6, 'p');
      INSERT INTO ledger (key_id, created_at, kind, delta, posting) VALUES ('key_a', 5, 'charge', -1, 'q')`);
    old.close();
    const engine = await openEngine(path);
    const audit = createLedgerAudit(engine);
    expect(await verifyLedger(audit)).toMatchObject({ imbalanceNanos: 0, faults: [] });
    expect(await createStore(engine, tools).closeLostRecords()).toBe(1);
    expect(await verifyLedger(audit)).toMatchObject({ imbalanceNanos: 0, faults: [] });
  });

  test('of version 10 keeps requests apart that never had an owner: closing one closes no other', async () => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    makeOldDatabase(path, 10);
    const old = new DatabaseSync(path);
    old.exec(`
      INSERT INTO api_keys (id, hash, name, created_at) VALUES ('key_a', 'h', 'old', 5);
      INSERT INTO accounts (key_id, balance, held, spent, postings) VALUES ('key_a', 3, 3, 0, 1);
      INSERT INTO ledger (key_id, created_at, kind, delta, posting) VALUES ('key_a', 5, 'credit', 6, 'p');
      INSERT INTO records (request_id, key_id, created_at, protocol, mode, model, upstream, queued_ms, hold, owner)
        VALUES ('req_owned', 'key_a', 6, 'chat', 'sync', 'm', 'u', 0, 2, 'gone'),
               ('req_old', 'key_a', 6, 'chat', 'sync', 'm', 'u', 0, 1, NULL)`);
    old.close();
    const engine = await openEngine(path);
    const store = createStore(engine, tools);
    expect(await store.closeAsLost(['req_owned'])).toBe(1);
    expect((await store.accounts(['key_a'])).get('key_a')).toMatchObject({ balanceNanos: 5, heldNanos: 1 });
    expect(await store.closeLostRecords()).toBe(1);
    expect(await verifyLedger(createLedgerAudit(engine))).toMatchObject({ imbalanceNanos: 0, faults: [] });
  });

  test('of version 12 has its ledger numbered by account, in the order in which it was written', async () => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    makeOldDatabase(path, 12);
    const old = new DatabaseSync(path);
    const insertPosting =
      'INSERT INTO ledger (key_id, created_at, kind, delta, request_id, reference, posting)';
    old.exec(`
      INSERT INTO api_keys (id, hash, name, created_at) VALUES ('key_a', 'h', 'a', 5), ('key_b', 'i', 'b', 5), ('key_c', 'j', 'c', 5);
      INSERT INTO accounts (key_id, balance, held, spent, postings) VALUES
        ('key_b', 17, 0, 3, 2), ('key_a', 14, 2, 4, 4), ('key_c', NULL, 0, 0, 0);
      INSERT INTO open_requests VALUES ('req_open', 'key_a', '', 6, 'chat', 'sync', 'm', 'u', 0, 0, 0, 0, 0, 0, 2)`);
    for (const [id, keyId, price] of [
      ['req_3', 'key_a', 3],
      ['req_1', 'key_b', 3],
      ['req_2', 'key_a', 1],
    ] as const)
      old.exec(`INSERT INTO records (request_id, key_id, created_at, protocol, mode, model, upstream, queued_ms, outcome,
          status, usage_source, price_request, charge)
        VALUES ('${id}', '${keyId}', 6, 'chat', 'sync', 'm', 'u', 0, 'completed', 200, 'none', ${price}, ${price})`);
    old.exec(`
      ${insertPosting} VALUES ('key_b', 5, 'credit', 20, NULL, 'r', 'p1'), ('key_a', 5, 'credit', 12, NULL, 'r', 'p2'),
        ('key_a', 6, 'charge', -3, 'req_3', NULL, 's1'), ('key_b', 6, 'charge', -3, 'req_1', NULL, 's2'),
        ('key_a', 7, 'charge', -1, 'req_2', NULL, 's3'), ('key_a', 8, 'credit', 8, NULL, 'q', 'p3')`);
    old.close();
    const engine = await openEngine(path);
    const audit = createLedgerAudit(engine);
    const sound = { accounts: 3, records: 3, imbalanceNanos: 0, faults: [] };
    expect(await verifyLedger(audit)).toEqual(sound);
    const readLedger = say('SELECT key_id, number, delta, request_id, reference, posting FROM ledger');
    const row = (
      keyId: string,
      number: number,
      delta: number,
      requestId: string | null,
      posting: string,
    ) => ({
      key_id: keyId,
      number,
      delta,
      request_id: requestId,
      reference: { p1: 'r', p2: 'r', p3: 'q' }[posting] ?? null,
      posting,
    });
    const carried = [
      row('key_a', 1, 12, null, 'p2'),
      row('key_a', 2, -3, 'req_3', 's1'),
      row('key_a', 3, -1, 'req_2', 's3'),
      row('key_a', 4, 8, null, 'p3'),
      row('key_b', 1, 20, null, 'p1'),
      row('key_b', 2, -3, 'req_1', 's2'),
    ];
    expect(await engine.read([readLedger])).toEqual([carried]);
    const store = createStore(engine, { ...tools, nextId: () => 'new' });
    expect((await store.credit({ keyId: 'key_a', nanos: 8, reference: 'q' })).result).toBe('booked before');
    expect((await store.credit({ keyId: 'key_b', nanos: 1, reference: 'q' })).result).toBe('booked');
    await store.settle({ ...settledRecord, requestId: 'req_open', begun: null, chargeNanos: 0 });
    expect(await verifyLedger(audit)).toEqual({ ...sound, records: 4 });
    expect((await engine.read([readLedger])).flat()).toContainEqual({
      ...row('key_b', 3, 1, null, 'new'),
      reference: 'q',
    });
    await expect(engine.run([say('UPDATE ledger SET delta = 0')])).rejects.toThrow('append-only');
    await expect(engine.run([say('DELETE FROM ledger')])).rejects.toThrow('append-only');
  });

  test('of version 12 whose records were pruned, and whose ledger was added to by hand, is brought up to date', async () => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    makeOldDatabase(path, 12);
    const old = new DatabaseSync(path);
    old.exec(`PRAGMA foreign_keys = OFF;
      INSERT INTO api_keys (id, hash, name, created_at) VALUES ('key_a', 'h', 'a', 5);
      INSERT INTO accounts (key_id, balance, held, spent, postings) VALUES ('key_a', 9, 0, 1, 1);
      INSERT INTO ledger (key_id, created_at, kind, delta, request_id, posting)
        VALUES ('key_a', 5, 'credit', 10, NULL, 'p'), ('key_a', 6, 'charge', -1, 'req_gone', 's')`);
    old.close();
    const engine = await openEngine(path);
    const store = createStore(engine, tools);
    expect((await store.credit({ keyId: 'key_a', nanos: 5, reference: 'r' })).result).toBe('booked');
    expect(await verifyLedger(createLedgerAudit(engine))).toMatchObject({ imbalanceNanos: 0, faults: [] });
  });

  test('of the first version is brought up to date, with its keys', async () => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    makeOldDatabase(path, 1);
    const old = new DatabaseSync(path);
    old.exec(
      `INSERT INTO api_keys (id, hash, name, created_at, concurrency) VALUES ('key_a', 'h', 'old', 5, 3)`,
    );
    old.close();
    const store = createStore(await openEngine(path), tools);
    expect(await store.findKeyByHash('h')).toEqual({
      id: 'key_a',
      name: 'old',
      createdAtMs: 5,
      limits: { concurrency: 3 },
      models: null,
      allowFrom: null,
      lowBalanceNanos: null,
      tags: [],
      expiresAt: null,
      budget: null,
      group: null,
      weight: 1,
      revokedAtMs: null,
      hasBalance: false,
      compatibility: {},
      isDeclared: false,
    });
  });

  test.each([
    [
      'one of its migrations differs from ours',
      `UPDATE migrations SET checksum = 'x' WHERE number = 1`,
      'step 1',
    ],
    ['it has a later migration', `INSERT INTO migrations VALUES (999, 'later', 'x')`, 'newer version'],
  ])('is refused when %s', async (_name, change, reason) => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    makeOldDatabase(path, migrations.length);
    const database = new DatabaseSync(path);
    database.exec(change);
    database.close();
    const engine = openTestEngine(path);
    await expect(engine.ready).rejects.toThrow(reason);
    await expect(engine.run([say('SELECT 1')])).rejects.toThrow(reason);
    await engine.close();
  });

  test('is opened by one process at a time, and by the next once that one has closed', async () => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    const first = openTestEngine(path);
    await first.ready;
    const second = openTestEngine(path);
    await expect(second.ready).rejects.toThrow('another textgate process');
    await second.close();
    await first.close();
    await openEngine(path);
  });
});

describe('a process on a file', () => {
  const opened = { ...openedRecord, hold: { nanos: 700, leastNanos: 1 } };
  const key = payingKey;

  test('closes at once what the process before it left open: the lock of the file proves that one dead', async () => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    const first = openTestEngine(path);
    const earlier = createStore(first, tools);
    await earlier.renewLease();
    await earlier.createKey(key, 'h', 1_000);
    await earlier.open(opened);
    await first.close();
    const engine = await openEngine(path);
    const store = createStore(engine, tools);
    await store.renewLease();
    await store.open({ ...opened, requestId: 'req_2', hold: { nanos: 5, leastNanos: 1 } });
    expect(await store.closeLostRecords()).toBe(1);
    expect((await store.accounts(['key_a'])).get('key_a')).toEqual({
      balanceNanos: 995,
      heldNanos: 5,
      spentNanos: 0,
    });
  });
});

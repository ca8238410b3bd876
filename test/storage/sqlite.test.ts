import { join } from 'node:path';
import { createHash, randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { free } from '../../src/domain/pricing.ts';
import type { Engine, Statement } from '../../src/storage/engine.ts';
import { migrations } from '../../src/storage/sqlite/migrations.ts';
import { createStore } from '../../src/storage/store.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const tools = { nextId: () => randomUUID(), now: () => 7, report: () => {} };

async function openEngine(path = ':memory:'): Promise<Engine> {
  const engine = openTestEngine(path);
  onTestFinished(() => engine.close());
  await engine.ready;
  return engine;
}

const say = (sql: string, ...values: Statement['values']): Statement => ({ sql, values });

/** A database as the version that knew only the first `count` steps left it. */
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

describe('units', () => {
  test('that share a commit fail alone, and whole', async () => {
    const engine = await openEngine();
    await engine.run([say('CREATE TABLE t (a INTEGER PRIMARY KEY)')]);
    const units = [
      engine.run([say('INSERT INTO t VALUES (?)', 1)]),
      engine.run([say('INSERT INTO t VALUES (?)', 2), say('INSERT INTO t VALUES (?)', 1)]),
      engine.run([say('INSERT INTO nowhere VALUES (1)')]),
      engine.run([say('INSERT INTO t VALUES (?)', 3)]),
    ];
    const settled = await Promise.allSettled(units);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
    const [rows] = await engine.run([say('SELECT a FROM t ORDER BY a')]);
    expect(rows?.map((row) => row['a'])).toEqual([1, 3]);
  });

  test('are done in the order in which they were handed in, however many there are', async () => {
    const engine = await openEngine();
    await engine.run([say('CREATE TABLE t (a INTEGER)')]);
    const numbers = Array.from({ length: 2_000 }, (_, number) => number);
    await Promise.all(numbers.map((number) => engine.run([say('INSERT INTO t VALUES (?)', number)])));
    const [rows] = await engine.run([say('SELECT a FROM t ORDER BY rowid')]);
    expect(rows?.map((row) => row['a'])).toEqual(numbers);
  });

  test('handed in before the close are committed, later ones are refused', async () => {
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
      expiresAt: null,
      revokedAtMs: null,
      hasBalance: false,
      compatibility: {},
    });
  });

  test.each([
    ['a step is another one than ours', `UPDATE migrations SET checksum = 'x' WHERE number = 1`, 'step 1'],
    [
      'it has a step that we don’t know',
      `INSERT INTO migrations VALUES (999, 'later', 'x')`,
      'newer version',
    ],
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

  test('is owned by one process at a time, and free again once that one has closed', async () => {
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

describe('a record', () => {
  const opened = {
    requestId: 'req_1',
    keyId: 'key_a',
    createdAtMs: 1,
    protocol: 'chat',
    mode: 'sync',
    model: 'm',
    upstream: 'u',
    queuedMs: 0.4,
    price: free,
    hold: { nanos: 0, leastNanos: 1 },
  } as const;
  const settled = {
    requestId: 'req_1',
    outcome: 'completed',
    upstream: null,
    attempts: [],
    status: 200,
    usage: null,
    usageSource: 'none',
    price: null,
    chargeNanos: 0,
    firstTextMs: null,
    totalMs: 2.6,
  } as const;

  test('is settled once: a second settlement is an error, and changes nothing', async () => {
    const engine = await openEngine();
    const store = createStore(engine, tools);
    await store.createKey(
      {
        id: 'key_a',
        name: 'a',
        createdAtMs: 1,
        limits: {},
        models: null,
        expiresAt: null,
        revokedAtMs: null,
        hasBalance: false,
        compatibility: {},
      },
      'h',
      null,
    );
    await store.open(opened);
    await store.settle(settled);
    await expect(store.settle({ ...settled, outcome: 'drained' })).rejects.toThrow('no open record of req_1');
    const [rows] = await engine.run([say('SELECT outcome, total_ms FROM records')]);
    expect(rows).toMatchObject([{ outcome: 'completed', total_ms: 3 }]);
  });
});

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { createMigrationTable, findPending } from '../../src/storage/migration.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { migrations } from '../../src/storage/postgres/migrations/all.ts';
import { createOutbox } from '../../src/storage/outbox/outbox-store.ts';
import { createStore } from '../../src/storage/store.ts';
import { beginningOf, budgetClaim, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { eventually } from '../support/eventually.ts';
import { createDatabase, onServer, openPostgres, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`a newer version beside this one on PostgreSQL${absent}`, () => {
  /** A database to which a newer version has added a step, which runs with versions that have so many steps. */
  async function makeNewer(runsWith: number): Promise<string> {
    const engine = await openPostgres();
    onTestFinished(() => engine.close());
    const { url } = engine.database;
    await onServer('ALTER TABLE records ADD COLUMN later TEXT', url);
    await onServer('ALTER TABLE key_limits ADD COLUMN later TEXT', url);
    await onServer(
      `INSERT INTO migrations VALUES (${migrations.length + 1}, 'later', 'x', ${runsWith})`,
      url,
    );
    return url;
  }

  test('does not keep it from starting and working, if its steps only add', async () => {
    const url = await makeNewer(migrations.length);
    const engine = createPostgresEngine({ url, clock: systemClock });
    onTestFinished(() => engine.close());
    await engine.ready;
    const store = createStore(engine, { nextId: () => 'id', now: () => 7, report: () => {} });
    await store.createKey(payingKey, 'hash', 1_000);
    await store.open(openedRecord);
    await store.settle(settledRecord);
    expect(await store.findRecord(openedRecord.requestId, null)).toMatchObject({ outcome: 'completed' });
  });

  test('keeps it from starting, if its steps need a version that knows them', async () => {
    const url = await makeNewer(migrations.length + 1);
    const engine = createPostgresEngine({ url, clock: systemClock });
    onTestFinished(() => engine.close());
    await expect(engine.ready).rejects.toThrow('the database was made by a newer version of textgate');
  });
});

/** The tables of an earlier version. */
async function makeEarlierSteps(client: Client): Promise<void> {
  await client.query(createMigrationTable(', runs_with INTEGER NOT NULL DEFAULT 0'));
  for (const { number, name, statements, checksum } of findPending(migrations.slice(0, 6), new Map())) {
    for (const statement of statements) await client.query(statement);
    await client.query('INSERT INTO migrations VALUES ($1, $2, $3)', [number, name, checksum]);
  }
}

describe.skipIf(postgresAbsence !== null)(`an earlier version beside this one on PostgreSQL${absent}`, () => {
  /** A database of the earlier version, a session of one of its nodes, and the engine of this version that waits for it. */
  async function openEarlier() {
    const database = await createDatabase();
    const clients = [0, 1].map(() => new Client({ connectionString: database.url }));
    const [reader, settler] = clients as [Client, Client];
    onTestFinished(async () => {
      await Promise.all(clients.map((client) => client.end()));
      await database.drop();
    });
    for (const client of clients) await client.connect();
    await makeEarlierSteps(reader);
    // As a list of records; of the two sides, the steps find the deadlock.
    await reader.query(
      `SET deadlock_timeout = '1min'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM records`,
    );
    const engine = createPostgresEngine({ url: database.url, clock: systemClock });
    onTestFinished(() => engine.close());
    const waits = (table: string) => async (): Promise<boolean> => {
      const waiting = `SELECT 1 FROM pg_locks WHERE relation = '${table}'::regclass AND NOT granted`;
      return (await onServer(waiting, database.url)).length > 0;
    };
    await eventually('a step waits', waits('records'));
    return { reader, settler, engine, waits };
  }

  test('is brought up to date by one of four nodes that start together; the others wait, and all of them serve', async () => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const client = new Client({ connectionString: database.url });
    onTestFinished(() => client.end());
    await client.connect();
    await makeEarlierSteps(client);
    // All of them stand before the first step.
    await client.query(`BEGIN; SELECT pg_advisory_xact_lock(7483912)`);
    const nodes = Array.from({ length: 4 }, () =>
      createPostgresEngine({ url: database.url, clock: systemClock }),
    );
    onTestFinished(async () => void (await Promise.all(nodes.map((node) => node.close()))));
    const waiting = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    await eventually('all of them wait', async () => (await onServer(waiting, database.url)).length === 4);
    await client.query('COMMIT');
    await Promise.all(nodes.map((node) => node.ready));
    const made = await client.query('SELECT number FROM migrations ORDER BY number');
    expect(made.rows.map(({ number }) => number)).toEqual(migrations.map((_, at) => at + 1));
    for (const [at, node] of nodes.entries()) {
      const store = createStore(node, { nextId: () => `id ${at}`, now: () => 7, report: () => {} });
      await store.createKey({ ...payingKey, id: `key_${at}` }, `hash ${at}`, 1_000);
      expect(await store.open({ ...openedRecord, requestId: `req_${at}`, keyId: `key_${at}` })).toMatchObject(
        {
          granted: true,
        },
      );
    }
    const deadlocks = `SELECT deadlocks AS count FROM pg_stat_database WHERE datname = current_database()`;
    expect((await client.query(deadlocks)).rows).toEqual([{ count: '0' }]);
  });

  test('may meet the steps of this one in a deadlock, after which they are made again', async () => {
    const { reader, engine } = await openEarlier();
    await reader.query('SELECT * FROM open_requests; COMMIT');
    await engine.ready;
    expect(await engine.read([{ sql: 'SELECT max(number) AS number FROM migrations', values: [] }])).toEqual([
      [{ number: migrations.length }],
    ]);
  });

  test('settles requests meanwhile, which wait for the steps and not the steps for them', async () => {
    const { reader, settler, engine, waits } = await openEarlier();
    await settler.query(`SET deadlock_timeout = '1min'`);
    const settled = settler.query(
      `SELECT 1 FROM accounts WHERE key_id = (SELECT key_id FROM open_requests WHERE request_id = 'x') FOR UPDATE`,
    );
    await eventually(
      'the settlement waits',
      async () => (await waits('accounts')()) || waits('open_requests')(),
    );
    const deadlocks = `SELECT deadlocks AS count FROM pg_stat_database WHERE datname = current_database()`;
    await reader.query('COMMIT');
    await engine.ready;
    await settled;
    await settler.query('SELECT pg_stat_clear_snapshot()');
    expect((await settler.query(deadlocks)).rows).toEqual([{ count: '0' }]);
  });
});

describe.skipIf(postgresAbsence !== null)(`the functions of earlier versions on PostgreSQL${absent}`, () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/operators/nodes.md'), 'utf8');
  const [, removal = ''] = /```sql\n(DO \$\$ DECLARE unused [^]*?)```/.exec(page) ?? [];

  test('are removed by the statement of docs/operators/nodes.md, and those of this version and of others stay', async () => {
    const engine = await openPostgres();
    onTestFinished(() => engine.close());
    const { url } = engine.database;
    const names = async (): Promise<readonly unknown[]> => {
      const found = await onServer(
        `SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace`,
        url,
      );
      return found.map(({ proname }) => proname);
    };
    const own = await names();
    const kept = 'textgate_of_an_operator';
    for (const name of ['textgate_settle_record_0123456789ab', 'textgate_take_slot_ba9876543210', kept])
      await onServer(`CREATE FUNCTION ${name}(TEXT) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'`, url);
    // The restart that the page asks for.
    const restarted = createPostgresEngine({ url, clock: systemClock });
    onTestFinished(() => restarted.close());
    await restarted.ready;
    for (let run = 0; run < 2; run++) {
      await onServer(removal, url);
      expect(new Set(await names())).toEqual(new Set([...own, kept]));
    }
    const store = createStore(engine, { nextId: () => 'id', now: () => 7, report: () => {} });
    await store.createKey(payingKey, 'hash', 1_000);
    await store.open(openedRecord);
    await store.settle(settledRecord);
    expect(await store.findRecord(openedRecord.requestId, null)).toMatchObject({ outcome: 'completed' });
  });
});

describe.skipIf(postgresAbsence !== null)(`budgets in which an earlier version counts, too${absent}`, () => {
  test('have no event of the number of levels that it writes, and one with the next charge of this version', async () => {
    const engine = await openPostgres();
    onTestFinished(() => engine.close());
    const { url } = engine.database;
    const store = createStore(engine, { nextId: randomUUID, now: () => 7, report: () => {} });
    await createOutbox(engine, randomUUID).storeSettings({ lowBalanceNanos: null, budgetLevels: true });
    await store.createKey(payingKey, 'hash', 1_000);
    const events = async () =>
      (await onServer('SELECT data FROM outbox', url)).map(
        ({ data }) => JSON.parse(String(data)) as Readonly<Record<string, unknown>>,
      );
    const { id, startMs, endMs } = budgetClaim;
    // As version 11 of the schema settles: it counts the levels that are reached, and knows no amount.
    const earlier = (level: number) =>
      onServer(
        `INSERT INTO budgets (id, period_start, period_end, spent, held, level) VALUES ('${id}', ${startMs}, ${endMs}, 5, 0, ${level})
         ON CONFLICT (id) DO UPDATE SET spent = budgets.spent + excluded.spent, level = excluded.level`,
        url,
      );
    await earlier(1);
    await earlier(2);
    expect(await events()).toEqual([]);
    const opened = { ...openedRecord, budgets: [budgetClaim] };
    await store.open(opened);
    await store.settle({ ...settledRecord, begun: beginningOf(opened), chargeNanos: 5 });
    expect(await events()).toMatchObject([{ level: 10, amount_nanos: 100, spent_nanos: 15 }]);
    await earlier(3);
    expect(await events()).toHaveLength(1);
  });
});

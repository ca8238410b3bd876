import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import type { Migration } from '../../src/storage/migration.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import type { PostgresEngine } from '../../src/storage/postgres/engine.ts';
import { migrations } from '../../src/storage/postgres/schema.ts';
import { createStore } from '../../src/storage/store.ts';
import { expectClaimsOfBefore, rowsBeforeClaimOwners } from '../support/claims-of-before.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { eventually } from '../support/eventually.ts';
import { createDatabase, onServer, openPostgres, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`a newer version beside this one on PostgreSQL${absent}`, () => {
  /** A database to which a newer version has added a step, which runs with versions that have so many steps. */
  async function makeNewer(runsWith: number): Promise<string> {
    const engine = await openPostgres();
    onTestFinished(() => engine.close());
    const { url } = engine.database;
    await onServer('ALTER TABLE record_rows ADD COLUMN later TEXT', url);
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

describe.skipIf(postgresAbsence !== null)(
  `a database from before the owners of ended claims on PostgreSQL${absent}`,
  () => {
    async function makeBefore(): Promise<string> {
      const engine = await openPostgres({ steps: migrations.slice(0, 3) });
      onTestFinished(() => engine.close());
      await onServer(rowsBeforeClaimOwners, engine.database.url);
      return engine.database.url;
    }

    test('keeps its claims, of which the ended ones have none', async () => {
      const engine = createPostgresEngine({ url: await makeBefore(), clock: systemClock });
      onTestFinished(() => engine.close());
      await engine.ready;
      await expectClaimsOfBefore(engine);
    });

    test('is refused by an earlier version from then on, which would free ended claims', async () => {
      const url = await makeBefore();
      const engine = createPostgresEngine({ url, clock: systemClock });
      onTestFinished(() => engine.close());
      await engine.ready;
      const before = createPostgresEngine({ url, clock: systemClock, steps: migrations.slice(0, 3) });
      onTestFinished(() => before.close());
      await expect(before.ready).rejects.toThrow('the database was made by a newer version of textgate');
    });
  },
);

/** The steps of a later version, beside which this one still runs. */
const laterSteps: readonly Migration[] = [
  ...migrations,
  {
    number: migrations.length + 1,
    runsWith: migrations.length,
    name: 'a further step',
    sql: 'ALTER TABLE record_rows ADD COLUMN later TEXT; ALTER TABLE open_rows ADD COLUMN later TEXT',
  },
];

/** A database of this version. */
async function makeEarlier() {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const engine = createPostgresEngine({ url: database.url, clock: systemClock });
  await engine.ready;
  await engine.close();
  return database;
}

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  onTestFinished(() => client.end());
  await client.connect();
  return client;
}

describe.skipIf(postgresAbsence !== null)(`nodes that start together on PostgreSQL${absent}`, () => {
  test.each([
    ['an empty database', createDatabase, migrations],
    ['a database of an earlier version', makeEarlier, laterSteps],
  ])('bring %s up to date once; three wait for one, and all of them serve', async (_what, make, steps) => {
    const database = await make();
    onTestFinished(() => database.drop());
    const nodes: PostgresEngine[] = [];
    // Behind the end of the client, for whose lock they wait.
    onTestFinished(async () => void (await Promise.all(nodes.map((node) => node.close()))));
    const client = await connect(database.url);
    // All of them stand before the first step.
    await client.query(`BEGIN; SELECT pg_advisory_xact_lock(7483912)`);
    for (let count = 0; count < 4; count++)
      nodes.push(createPostgresEngine({ url: database.url, clock: systemClock, steps }));
    const waiting = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    await eventually('all of them wait', async () => (await onServer(waiting, database.url)).length === 4);
    await client.query('COMMIT');
    await Promise.all(nodes.map((node) => node.ready));
    const made = await client.query('SELECT number FROM migrations ORDER BY number');
    expect(made.rows).toEqual(steps.map(({ number }) => ({ number })));
    for (const [at, node] of nodes.entries()) {
      const store = createStore(node, { nextId: () => `id ${at}`, now: () => 7, report: () => {} });
      await store.createKey({ ...payingKey, id: `key_${at}` }, `hash ${at}`, 1_000);
      const opened = { ...openedRecord, requestId: requestIdFor(`${at}`), keyId: `key_${at}` };
      expect(await store.open(opened)).toMatchObject({ granted: true });
    }
    const deadlocks = `SELECT deadlocks AS count FROM pg_stat_database WHERE datname = current_database()`;
    expect((await client.query(deadlocks)).rows).toEqual([{ count: '0' }]);
  });
});

describe.skipIf(postgresAbsence !== null)(
  `an earlier version beside a later one on PostgreSQL${absent}`,
  () => {
    /** A database of this version, two sessions of one of its nodes, and the engine of the later version that waits for one. */
    async function openEarlier() {
      const { url } = await makeEarlier();
      const [reader, settler] = [await connect(url), await connect(url)];
      // As what reads records; of the two sides, the steps find the deadlock.
      await reader.query(
        `SET deadlock_timeout = '1min'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM record_rows`,
      );
      const engine = createPostgresEngine({ url, clock: systemClock, steps: laterSteps });
      onTestFinished(() => engine.close());
      const waits = (table: string) => async (): Promise<boolean> => {
        const waiting = `SELECT 1 FROM pg_locks WHERE relation = '${table}'::regclass AND NOT granted`;
        return (await onServer(waiting, url)).length > 0;
      };
      await eventually('a step waits', waits('record_rows'));
      return { reader, settler, engine, waits };
    }

    test('may meet the steps of that one in a deadlock, after which they are made again', async () => {
      const { reader, engine } = await openEarlier();
      await reader.query('SELECT * FROM open_rows; COMMIT');
      await engine.ready;
      expect(
        await engine.read([{ sql: 'SELECT max(number) AS number FROM migrations', values: [] }]),
      ).toEqual([[{ number: laterSteps.length }]]);
    });

    test('settles requests meanwhile, which wait for the steps and not the steps for them', async () => {
      const { reader, settler, engine, waits } = await openEarlier();
      await settler.query(`SET deadlock_timeout = '1min'`);
      const settled = settler.query(
        `SELECT 1 FROM accounts WHERE number = (SELECT account FROM open_rows WHERE created_at = 0) FOR UPDATE`,
      );
      await eventually(
        'the settlement waits',
        async () => (await waits('accounts')()) || waits('open_rows')(),
      );
      const deadlocks = `SELECT deadlocks AS count FROM pg_stat_database WHERE datname = current_database()`;
      await reader.query('COMMIT');
      await engine.ready;
      await settled;
      await settler.query('SELECT pg_stat_clear_snapshot()');
      expect((await settler.query(deadlocks)).rows).toEqual([{ count: '0' }]);
    });
  },
);

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

describe.skipIf(postgresAbsence !== null)(
  `a database of a development version on PostgreSQL${absent}`,
  () => {
    test('is refused at the start with what to do, and stays as it is', async () => {
      const { url } = await makeEarlier();
      const steps = Array.from(
        { length: 16 },
        (_, at) => `(${at + 1}, 'keys and records', 'of step ${at + 1}', 6)`,
      );
      await onServer(`DELETE FROM migrations; INSERT INTO migrations VALUES ${steps.join()}`, url);
      const state = async (): Promise<unknown> => [
        await onServer('SELECT * FROM migrations ORDER BY number', url),
        // A row of a catalogue is another one after every change.
        await onServer('SELECT oid, xmin, relname FROM pg_class ORDER BY oid', url),
        await onServer('SELECT oid, xmin, proname FROM pg_proc ORDER BY oid', url),
      ];
      const before = await state();
      const engine = createPostgresEngine({ url, clock: systemClock });
      onTestFinished(() => engine.close());
      await expect(engine.ready).rejects.toThrow(
        /made by a development version of textgate.*left as it is\. Set storage\.url to another database.*textgate keys list/,
      );
      expect(await state()).toEqual(before);
    });
  },
);

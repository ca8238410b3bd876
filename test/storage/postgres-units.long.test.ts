import { Client } from 'pg';
import type { QueryConfig } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { Lanes } from '../../src/storage/postgres/connection/connections.ts';
import { readTarget } from '../../src/storage/postgres/connection/connection-target.ts';
import { createStore } from '../../src/storage/store.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { rejection, usePostgresBench } from '../support/postgres-bench.ts';
import { errorMessage } from '../support/postgres-error.ts';
import { keep } from '../support/postgres-connection.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

function say(sql: string, ...values: readonly (string | number | null)[]) {
  return { sql, values };
}

const bench = usePostgresBench();

/** An engine behind a proxy. */
async function openEngine() {
  const { proxy, url } = await bench.proxy();
  const engine = createPostgresEngine({ url, clock: systemClock });
  onTestFinished(() => engine.close());
  await engine.ready;
  return { engine, proxy, url };
}

/** Makes an empty table of items with numbers. */
async function emptyItems(): Promise<void> {
  await bench.sql(
    'DROP TABLE IF EXISTS items; CREATE TABLE items (id BIGINT PRIMARY KEY, amount BIGINT DEFAULT 0)',
  );
}

const insert = (id: number) => say('INSERT INTO items (id) VALUES (?)', id);
const items = async () => (await bench.sql('SELECT id::int FROM items ORDER BY id')).map(({ id }) => id);

describe.skipIf(postgresAbsence !== null)(`units on PostgreSQL whose answers are lost${absent}`, () => {
  test('reject for now, and a settlement that is offered again charges once', async () => {
    const { engine, proxy } = await openEngine();
    let last = 0;
    const store = createStore(engine, { nextId: () => `id_${++last}`, now: () => 7, report: () => {} });
    await store.createKey(payingKey, 'hash', 1_000);
    // What such a settlement needs to know of the database before, this node has asked by then.
    const earlier = { ...openedRecord, requestId: requestIdFor('earlier') };
    await store.open(earlier);
    await store.settle({ ...settledRecord, requestId: earlier.requestId, chargeNanos: 0 });
    await store.open(openedRecord);
    const account = async () => (await bench.sql('SELECT balance, held, spent FROM accounts'))[0];
    expect(await account()).toEqual({ balance: '995', held: '5', spent: '0' });
    proxy.mode = 'mute';
    const lost = rejection(store.settle(settledRecord));
    await eventually('the settlement is committed', async () => (await account())?.['held'] === '0');
    proxy.reset();
    expect(await lost).toMatchObject({ isPermanent: false });
    proxy.mode = 'open';
    await eventually('it answers again', () => engine.impaired === null);
    await expect(store.settle(settledRecord)).rejects.toThrow('no open record');
    expect(await store.isSettled(settledRecord)).toBe(true);
    expect(await account()).toEqual({ balance: '999', held: '0', spent: '1' });
    expect(await bench.sql(`SELECT delta FROM ledger WHERE kind = 'charge'`)).toEqual([{ delta: '-1' }]);
  });

  test('have been done whole or not at all, wherever the connection is cut', async () => {
    await emptyItems();
    const { engine, proxy } = await openEngine();
    for (const [mode, expected] of [
      ['mute', [1, 2]],
      ['stalled', []],
    ] as const) {
      await bench.sql('DELETE FROM items');
      proxy.mode = mode;
      const lost = rejection(engine.run([insert(1), insert(2)]));
      if (mode === 'mute') await eventually('it is committed', async () => (await items()).length > 0);
      proxy.reset();
      expect(await lost).toMatchObject({ isPermanent: false });
      expect(await items()).toEqual(expected);
      proxy.mode = 'open';
      await eventually('it answers again', () => engine.impaired === null);
    }
    await engine.run([insert(3)]);
    expect(await items()).toEqual([3]);
  });
});

describe.skipIf(postgresAbsence !== null)(`units on PostgreSQL that fail in the middle${absent}`, () => {
  const transaction = (...texts: readonly string[]) => [
    { text: 'BEGIN READ WRITE' },
    ...texts.map((text) => ({ text })),
    { text: 'COMMIT' },
  ];

  test('reject with the first error, keep nothing, and leave the units around them alone', async () => {
    await emptyItems();
    const { engine } = await openEngine();
    const settled = await Promise.allSettled([
      engine.run([insert(1)]),
      engine.run([insert(2), insert(1), say('INSERT INTO nowhere VALUES (1)'), insert(3)]),
      engine.run([insert(4)]),
    ]);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(settled[1]).toMatchObject({ reason: { code: '23505', reason: 'rejected' } });
    expect(await items()).toEqual([1, 4]);
  });

  test.each([
    ['has no text', { text: undefined as unknown as string }],
    [
      'has a value that can not be written',
      {
        text: 'INSERT INTO items (id) VALUES ($1)',
        values: [
          {
            toPostgres() {
              throw new Error('no value');
            },
          },
        ],
      },
    ],
    ['has the name of another one', { name: 'named', text: 'SELECT 2' }],
  ])('send nothing of a transaction with a query that %s', async (_what, wrong) => {
    await emptyItems();
    // Without a proxy, which could lose what was sent before the connection is closed.
    const { connection, clock } = keep(bench.url);
    await connection.opened;
    await connection.send([{ name: 'named', text: 'SELECT 1' }]);
    const [begin, first, second, commit] = transaction(
      'INSERT INTO items (id) VALUES (1)',
      'INSERT INTO items (id) VALUES (2)',
    );
    const beside = connection.send(transaction('INSERT INTO items (id) VALUES (8)'));
    const failed = connection.send([begin, first, wrong, second, commit] as QueryConfig[]);
    await expect(failed).rejects.toMatchObject({
      reason: 'rejected',
      message: expect.stringMatching(/can't be sent/),
    });
    // It was held together with the other one, and is lost with it.
    await expect(beside).rejects.toMatchObject({ isPermanent: false });
    expect(connection.waiting).toBe(0);
    await eventually('it pauses', () => clock.scheduled === 1 && connection.fault !== null);
    await eventually('the server has read all of it', async () => {
      const left = await bench.sql(`SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'textgate'`);
      return left.length === 0;
    });
    clock.advance(2_000);
    await eventually('it is open again', () => connection.fault === null);
    await connection.send(transaction('INSERT INTO items (id) VALUES (9)'));
    expect(await items()).toEqual([9]);
  });

  test('keep nothing when the statement that begins the transaction fails', async () => {
    await emptyItems();
    const { url } = await bench.proxy();
    const { connection } = keep(url, { callsFunctions: false });
    await connection.opened;
    const [, ...rest] = transaction('INSERT INTO items (id) VALUES (1)');
    await expect(connection.send([{ text: 'BEGIN NOTHING' }, ...rest])).rejects.toMatchObject({
      code: '42601',
    });
    expect(await items()).toEqual([]);
  });

  test('refuse more values than a statement can have, rather than send some of them', async () => {
    await emptyItems();
    const { engine } = await openEngine();
    const places = Array.from({ length: 65_536 }, () => '(?)').join();
    const values = Array.from({ length: 65_536 }, (_, id) => id);
    const tooLong = engine.run([insert(-1), say(`INSERT INTO items (id) VALUES ${places}`, ...values)]);
    await expect(tooLong).rejects.toThrow('a statement has more than 65535 values');
    await expect(tooLong).rejects.toMatchObject({ reason: 'rejected' });
    expect(await items()).toEqual([]);
    await engine.run([say(`INSERT INTO items (id) VALUES ${places.slice(4)}`, ...values.slice(1))]);
    expect(await items()).toHaveLength(65_535);
  });
});

describe.skipIf(postgresAbsence !== null)(
  `units that PostgreSQL undoes for the sake of others${absent}`,
  () => {
    /** Each unit that inserts an item is undone as a serialization failure, so often. */
    const failFirst = async (times: number) => {
      await emptyItems();
      await bench.sql(`DROP SEQUENCE IF EXISTS tries; CREATE SEQUENCE tries;
      CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('tries') <= ${times} THEN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END IF;
        RETURN NEW; END $$;
      CREATE TRIGGER fail BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION fail()`);
    };
    const tries = async () => (await bench.sql('SELECT last_value::int FROM tries'))[0]?.['last_value'];

    test('are repeated whole', async () => {
      await failFirst(3);
      const { engine } = await openEngine();
      const results = await engine.run([say('SELECT 7 AS seven'), insert(1)]);
      expect(results).toEqual([[{ seven: 7 }], []]);
      expect([await tries(), await items()]).toEqual([4, [1]]);
    });

    test('are rejected for now after four times', async () => {
      await failFirst(100);
      const { engine } = await openEngine();
      await expect(engine.run([insert(1)])).rejects.toMatchObject({ reason: 'locked', isPermanent: false });
      expect([await tries(), await items()]).toEqual([4, []]);
    });

    test('are repeated after a deadlock, once the other one is done', async () => {
      await emptyItems();
      await bench.sql('INSERT INTO items (id) VALUES (1), (2)');
      const { engine, url } = await openEngine();
      const other = new Client({ connectionString: url });
      await other.connect();
      onTestFinished(() => other.end());
      const add = (id: number) => say('UPDATE items SET amount = amount + 1 WHERE id = ?', id);
      // The one that looks for deadlocks first is undone.
      await other.query(`SET deadlock_timeout = '20s'`);
      await other.query('BEGIN');
      await other.query('UPDATE items SET amount = amount + 10 WHERE id = 2');
      const unit = engine.run([add(1), add(2)]);
      await eventually('the unit waits', async () => {
        const waiting = await bench.sql(`SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`);
        return waiting.length > 0;
      });
      await other.query('UPDATE items SET amount = amount + 10 WHERE id = 1');
      await other.query('COMMIT');
      await unit;
      expect(await bench.sql('SELECT amount::int FROM items')).toEqual([{ amount: 11 }, { amount: 11 }]);
    });
  },
);

describe.skipIf(postgresAbsence !== null)(`an engine on PostgreSQL that does not get ready${absent}`, () => {
  test.each(['refused', 'lost for good while it migrates', 'closed at once', 'closed while it migrates'])(
    'rejects its units and keeps nothing open when it is %s',
    async (how) => {
      const { proxy, url } = await bench.proxy();
      const clock = createFakeClock();
      if (how === 'refused') proxy.answers = [errorMessage('28P01', 'password authentication failed')];
      const migrates = how.endsWith('migrates');
      const other = new Client({ connectionString: bench.url });
      await other.connect();
      onTestFinished(() => other.end());
      // The lock of nodes that bring the schema up to date, one after the other.
      if (migrates) await other.query('SELECT pg_advisory_lock(7483912)');
      const engine = createPostgresEngine({ url, clock });
      onTestFinished(() => engine.close());
      const unit = rejection(engine.run([say('SELECT 1')]));
      if (migrates)
        await eventually('it waits for the lock', async () => {
          const waiting = await bench.sql(
            `SELECT 1 FROM pg_locks WHERE locktype = 'advisory'
            AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
          );
          return waiting.length > 0;
        });
      const isLost = how.startsWith('lost');
      if (isLost) {
        await proxy.refuse();
        proxy.reset();
      }
      const closed = how.startsWith('closed') ? engine.close() : null;
      if (how === 'closed while it migrates') await other.query('SELECT pg_advisory_unlock(7483912)');
      await closed;
      const failed = rejection(engine.ready);
      let hasFailed = false;
      void failed.then(() => (hasFailed = true));
      if (isLost)
        await eventually('it gives up', () => {
          clock.advance(1_000);
          return hasFailed;
        });
      await failed;
      expect(await unit).toMatchObject({ isPermanent: false });
      await eventually('nothing is open', () => proxy.open === 0 && clock.scheduled === 0);
    },
  );
});

describe.skipIf(postgresAbsence !== null)(`lanes to PostgreSQL${absent}`, () => {
  test('let a short read pass a long one, and units pass both', async () => {
    await emptyItems();
    const { engine, url } = await openEngine();
    const other = new Client({ connectionString: url });
    await other.connect();
    onTestFinished(() => other.end());
    await other.query('SELECT pg_advisory_lock(1)');
    const order: string[] = [];
    const long = engine.read([say('SELECT pg_advisory_xact_lock(1)')]).then(() => order.push('long read'));
    for (let id = 1; id <= 5; id++) {
      expect(await engine.read([say('SELECT 1 AS one')])).toEqual([[{ one: 1 }]]);
      await engine.run([insert(id)]);
    }
    order.push('short reads and units');
    await other.query('SELECT pg_advisory_unlock(1)');
    await long;
    expect(order).toEqual(['short reads and units', 'long read']);
  });

  test('take the place of one that is lost', async () => {
    const { proxy, url } = await bench.proxy();
    const clock = createFakeClock();
    const limits = { statementMs: 5_000, lockMs: 4_000 };
    const lanes = new Lanes(3, { target: readTarget(url), limits, callsFunctions: true, clock });
    onTestFinished(() => lanes.close());
    await lanes.opened;
    const own = lanes.of('a');
    expect([lanes.of('a'), lanes.fault]).toEqual([own, null]);
    const [answer] = await own.send([{ text: 'SELECT pg_backend_pid() AS pid' }]);
    const [row] = (answer?.rows ?? []) as readonly { readonly pid: number }[];
    await bench.sql(`SELECT pg_terminate_backend(${row?.pid})`);
    await eventually('it is lost', () => own.fault !== null);
    expect(lanes.fault).toBeNull();
    expect(lanes.of('a')).not.toBe(own);
    expect(lanes.leastBusy()).not.toBe(own);
    await lanes.of('a').send([{ text: 'SELECT 1' }]);
    await proxy.refuse();
    proxy.reset();
    await eventually('all are lost', () => lanes.fault !== null);
    expect(lanes.fault).toBeInstanceOf(StorageError);
    await expect(lanes.of('a').send([{ text: 'SELECT 1' }])).rejects.toMatchObject({ isPermanent: false });
  });

  test.each([
    ['replaced', ''],
    ['dropped and created anew', 'DROP FUNCTION seven();'],
  ])('keep the prepared statements of a function that is %s', async (_how, drop) => {
    const create = (result: number) =>
      `CREATE OR REPLACE FUNCTION seven() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN ${result}; END'`;
    await bench.sql(create(7));
    const { url } = await bench.proxy();
    const { connection } = keep(url);
    await connection.opened;
    const called = async () => {
      const [answer] = await connection.send([{ name: 'call_seven', text: 'SELECT seven() AS row' }]);
      return answer?.rows as unknown;
    };
    for (let time = 0; time < 10; time++) expect(await called()).toEqual([{ row: 7 }]);
    await bench.sql(`${drop} ${create(8)}`);
    expect(await called()).toEqual([{ row: 8 }]);
    await bench.sql('DROP FUNCTION seven()');
    await expect(called()).rejects.toMatchObject({ code: '42883', isPermanent: false });
    await bench.sql(create(9));
    expect(await called()).toEqual([{ row: 9 }]);
  });
});

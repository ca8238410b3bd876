import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { settingsOf } from '../../src/storage/postgres/connection/client-config.ts';
import { createSlotStore } from '../../src/storage/postgres/slots/slot-store.ts';
import { freeLost } from '../../src/storage/postgres/slots/slot-searches.ts';
import { openPostgres, onServer, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
const limits = { concurrency: 1, requestsPerMinute: 100, queueWaitMs: 60_000 };

/** A database with the lease of `mine`, its slots, and the steps on them that were asked for, by their names. */
async function setUp() {
  const engine = await openPostgres();
  onTestFinished(() => engine.close());
  const { url } = engine.database;
  const sql = (text: string) => onServer(text, url);
  await sql(`INSERT INTO owners (id, since, renewed_at) SELECT 'mine', now_ms(), now_ms()`);
  const asked: string[] = [];
  const counting: Pick<typeof engine, 'callFunction' | 'lookUp'> = {
    callFunction(...call) {
      asked.push(call[0].called);
      return engine.callFunction(...call);
    },
    lookUp: (...call) => engine.lookUp(...call),
  };
  return { url, sql, asked, store: createSlotStore(counting, () => 'mine') };
}

/** Another session, like those that call functions, in a transaction until the end of the test, or of the transaction. */
async function begin(url: string): Promise<Client> {
  const session = new Client({ connectionString: url });
  await session.connect();
  onTestFinished(() => session.end());
  await session.query(
    `SELECT ${settingsOf({ limits: { statementMs: 5_000, lockMs: 4_000 }, callsFunctions: true })}`,
  );
  await session.query('BEGIN');
  return session;
}

const lock = (key: string): string => `SELECT 1 FROM key_limits WHERE key_id = '${key}' FOR UPDATE`;

/** Slots of a lost process: of each of some keys, as many as given. */
const loseSlots = (keys: number, ofEach: number): string => `
  INSERT INTO key_limits (key_id, running) SELECT 'key-' || key, ${ofEach} FROM generate_series(1, ${keys}) AS key;
  INSERT INTO slots (request_id, key_id, owner) SELECT key || '-' || slot, 'key-' || key, 'lost'
  FROM generate_series(1, ${keys}) AS key, generate_series(1, ${ofEach}) AS slot`;

describe.skipIf(postgresAbsence !== null)(`searches for slots in PostgreSQL${absent}`, () => {
  test('free 20,000 slots of lost processes, some keys in a step, and serve the queues of all keys', async () => {
    const { sql, asked, store } = await setUp();
    await sql(loseSlots(500, 40));
    await sql(
      `INSERT INTO waiting_requests (key_id, ticket, request_id, owner, concurrency, requests_per_minute)
       SELECT key_id, ticket, key_id || '-' || ticket, 'mine', 5, 100 FROM key_limits, generate_series(1, 20) AS ticket`,
    );
    await sql('UPDATE key_limits SET waiting = 20, last_ticket = 20');
    expect(await store.freeLost()).toBe(20_000);
    // Of 50 keys each, and one that finds nothing any more.
    expect(asked).toHaveLength(11);
    expect(
      await sql(
        `SELECT running, waiting, starts, count(*) FROM key_limits GROUP BY running, waiting, starts`,
      ),
    ).toEqual([{ running: '5', waiting: '15', starts: '5', count: '500' }]);
    expect(await sql('SELECT owner, count(*) FROM slots GROUP BY owner')).toEqual([
      { owner: 'mine', count: '2500' },
    ]);
  });

  test('do not read the slots of all keys for each of them', async () => {
    const { url, sql } = await setUp();
    await sql(loseSlots(50, 40));
    const session = await begin(url);
    const { rows: freed } = await session.query(freeLost.call([]));
    expect(freed).toEqual([{ freed: '2000', passed_over: '0' }]);
    const { rows: read } = await session.query(
      `SELECT (pg_stat_get_xact_tuples_returned('slots'::regclass) + (
         SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid)) FROM pg_index WHERE indrelid = 'slots'::regclass
       ))::int AS count`,
    );
    // Each slot once to find it, and once to delete it; for each of 50 keys it would be 100,000.
    expect(Number(read[0]?.count)).toBeGreaterThanOrEqual(4_000);
    expect(Number(read[0]?.count)).toBeLessThan(10_000);
  });

  test('free what is lost of other keys while a key is locked, and that of this key by the next search', async () => {
    const { url, sql, asked, store } = await setUp();
    await sql(loseSlots(3, 2));
    const session = await begin(url);
    await session.query(lock('key-1'));
    expect(await store.freeLost()).toBe(4);
    // One that frees, and three that find the locked key alone.
    expect(asked).toHaveLength(4);
    await session.query('COMMIT');
    expect(await store.freeLost()).toBe(2);
    expect(await sql('SELECT running FROM key_limits')).toEqual([
      { running: '0' },
      { running: '0' },
      { running: '0' },
    ]);
  });

  test('give queued requests their limits while another key is locked, and those of this key by the next search', async () => {
    const { url, sql, store } = await setUp();
    await sql(
      `INSERT INTO api_keys (id, hash, name, created_at) SELECT id, id, '', 0 FROM unnest(ARRAY['a', 'b']) AS id`,
    );
    for (const keyId of ['a', 'b'])
      for (const number of [1, 2])
        await store.take({ keyId, requestId: `${keyId} ${number}`, limits, mayWait: true });
    const session = await begin(url);
    await session.query(lock('a'));
    const raised = { concurrency: 2, requestsPerMinute: 100 };
    const served = async () => (await store.endedWaits()).map(({ requestId }) => requestId);
    expect(await store.followLimits(raised, new Map())).toBe(1);
    expect(await served()).toEqual(['b 2']);
    await session.query('COMMIT');
    expect(await store.followLimits(raised, new Map())).toBe(1);
    expect(await served()).toEqual(['a 2']);
  });

  test('forget the old starts of other keys while a key is locked, and those of this key by the next search', async () => {
    const { url, sql, store } = await setUp();
    await sql(
      `INSERT INTO key_limits (key_id, starts, last_start_at) SELECT id, 1, 7 FROM unnest(ARRAY['a', 'b']) AS id;
       INSERT INTO starts (key_id, at) SELECT id, 7 FROM unnest(ARRAY['a', 'b']) AS id`,
    );
    const left = () => sql('SELECT key_id FROM starts');
    const session = await begin(url);
    await session.query(lock('a'));
    expect(await store.forgetStarts('')).toBe('b');
    expect(await left()).toEqual([{ key_id: 'a' }]);
    await session.query('COMMIT');
    await store.forgetStarts('');
    expect(await left()).toEqual([]);
  });
});

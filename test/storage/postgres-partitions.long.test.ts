import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Clock } from '../../src/domain/ports/clock.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createRetention } from '../../src/storage/retention.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
const hourMs = 3_600_000;
const retryMs = 60_000;

/** A time in a month after all months in which the tests are run, the last of a year before one with a leap day. */
const startMs = Date.UTC(2091, 11, 15);

/** A moment of a month that follows, in UTC: the first one, unless the rest of its date is given. */
const inMonth = (month: number, ...rest: readonly number[]) => Date.UTC(2092, month - 1, ...rest);

/** The partitions that every database has. */
const fixed = new Set(['records_default', 'records_earlier']);

/** The last tail of an id. */
const latest = 'f'.repeat(20);

/** The id of a request at a time. */
function idAt(atMs: number, rest = '00000000000000000000'): string {
  return `req_${atMs.toString(16).padStart(12, '0')}${rest}`;
}

/** A clock whose time may be set, and which counts the rounds in which partitions are created. */
function createSetClock() {
  const clock = createFakeClock(startMs);
  const state = { aheadMs: 0, rounds: 0 };
  const setClock: Clock = {
    now: () => clock.now() + state.aheadMs,
    monotonicMs: () => clock.monotonicMs(),
    schedule(delayMs, callback) {
      if (delayMs === hourMs || delayMs === retryMs) state.rounds++;
      return clock.schedule(delayMs, callback);
    },
  };
  /** Begins the next round, an hour after the one before or a minute after one that failed, and calls it this time. */
  const startRound = (atMs: number, delayMs = hourMs): void => {
    state.aheadMs = atMs - clock.now() - delayMs;
    clock.advance(delayMs);
  };
  return {
    setClock,
    startRound,
    /** Has the next round at this time, and waits for it. */
    async waitRound(atMs: number) {
      const before = state.rounds;
      startRound(atMs);
      await eventually('the round is over', () => state.rounds > before);
    },
    get rounds() {
      return state.rounds;
    },
  };
}

/** A database that is dropped at the end of the test. */
async function newDatabase() {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  return database;
}

/** A node with a clock of its own, on a new database or on that of another one. */
async function openNode(at?: string) {
  const url = at ?? (await newDatabase()).url;
  const time = createSetClock();
  const faults: unknown[] = [];
  const engine = createPostgresEngine({
    url,
    clock: time.setClock,
    onFault: (message, error) => void faults.push([message, error]),
  });
  onTestFinished(() => engine.close());
  await engine.ready;
  const store = createStore(engine, { nextId: randomUUID, now: () => 7, report: () => {} });
  return { engine, store, time, faults, url, sql: (text: string) => onServer(text, url) };
}

/** The partitions of months, in order. */
async function monthsOf(url: string): Promise<readonly string[]> {
  const rows = await onServer(
    `SELECT relid::regclass::text AS name FROM pg_partition_tree('record_rows') WHERE isleaf ORDER BY 1`,
    url,
  );
  return rows.map(({ name }) => String(name)).filter((name) => !fixed.has(name));
}

/** Writes records with a charge whose times are those of an expression, and their tails those of another one. */
const insertRecords = (times: string, tails = `'00000000000000000000'`) =>
  `INSERT INTO record_rows (created_at, tail, account, kind, queued_ms, settled_ms, charge, charge_number)
   SELECT ${times}, unhex(${tails}), 1, 1, 0, 0, 1, 1`;

/** The partition of each record. */
const places = `SELECT 'req_' || lpad(to_hex(created_at), 12, '0') || encode(tail, 'hex') AS id,
  tableoid::regclass::text AS place FROM record_rows ORDER BY created_at, tail`;

describe.skipIf(postgresAbsence !== null)(`the partitions of the records on PostgreSQL${absent}`, () => {
  test('are there for this month and the next one, from the first moment of each month on', async () => {
    const { time, faults, url } = await openNode();
    const first = ['records_2091_12', 'records_2092_01'];
    expect(await monthsOf(url)).toEqual(first);
    await time.waitRound(inMonth(1) - 1);
    expect(await monthsOf(url)).toEqual(first);
    await time.waitRound(inMonth(1));
    expect(await monthsOf(url)).toEqual([...first, 'records_2092_02']);
    await time.waitRound(inMonth(2, 29, 23));
    expect(await monthsOf(url)).toEqual([...first, 'records_2092_02', 'records_2092_03']);
    expect(faults).toEqual([]);
  });

  test('have the records of their month, however long it is, and the fixed ones those of no month', async () => {
    const { store, engine, sql, time } = await openNode();
    await store.createKey(payingKey, 'hash', 1_000);
    for (const month of [1, 3]) await time.waitRound(inMonth(month, 20));
    const ids = [
      [idAt(0), 'records_earlier'],
      [idAt(1), 'records_earlier'],
      [idAt(inMonth(0) - 1, latest), 'records_default'],
      [idAt(inMonth(0)), 'records_2091_12'],
      [idAt(inMonth(0, 31, 23, 59, 59, 999), latest), 'records_2091_12'],
      [idAt(inMonth(1)), 'records_2092_01'],
      [idAt(inMonth(2, 29)), 'records_2092_02'],
      [idAt(inMonth(3) - 1, latest), 'records_2092_02'],
      [idAt(inMonth(3)), 'records_2092_03'],
      [idAt(inMonth(3, 31, 23, 59)), 'records_2092_03'],
      [idAt(inMonth(4)), 'records_2092_04'],
      [idAt(inMonth(4, 30, 23, 59)), 'records_2092_04'],
      [idAt(inMonth(5)), 'records_default'],
      [idAt(2 ** 48 - 1, latest), 'records_default'],
    ] as const;
    for (const [requestId] of ids) {
      const begun = { ...openedRecord, requestId };
      await store.open(begun);
      await store.settle({ ...settledRecord, requestId, begun: beginningOf(begun), chargeNanos: 0 });
      await expect(store.settle({ ...settledRecord, requestId })).rejects.toThrow('no open record');
    }
    expect(await sql(places)).toEqual(ids.map(([id, place]) => ({ id, place })));
    expect(await verifyLedger(createLedgerAudit(engine))).toMatchObject({
      records: ids.length,
      imbalanceNanos: 0,
    });
    const listed = await store.listRecords({}, 4, null);
    expect(listed?.records.map(({ requestId }) => requestId)).toEqual(
      ids
        .map(([id]) => id)
        .toReversed()
        .slice(0, 4),
    );
  });

  test('are never emptied at once, with the charges in them, nor are the kinds of their records changed', async () => {
    const { store, url, sql } = await openNode();
    await store.createKey(payingKey, 'hash', 1_000);
    await store.settle(settledRecord);
    for (const table of ['record_rows', ...fixed, ...(await monthsOf(url)), 'record_kinds'])
      await expect(sql(`TRUNCATE ${table}`)).rejects.toThrow(/append-only|never changed or removed/);
    await expect(sql(`UPDATE record_kinds SET model = 'n'`)).rejects.toThrow('never changed');
    await expect(sql('DELETE FROM record_kinds')).rejects.toThrow('never changed or removed');
    expect(await store.findRecord(settledRecord.requestId, null)).toMatchObject({
      model: 'm',
      chargeNanos: 1,
    });
  });

  test('have a February of 28 days in the year 2100, which has no leap day', async () => {
    const { sql, time } = await openNode();
    await time.waitRound(Date.UTC(2100, 0, 31));
    await sql(insertRecords(`unnest(ARRAY[${Date.UTC(2100, 1, 28, 23)}, ${Date.UTC(2100, 2)}])`));
    expect(await sql(places)).toMatchObject([{ place: 'records_2100_02' }, { place: 'records_default' }]);
  });

  test('begin with the month in UTC in which the table was made: earlier records, as of a database that moved, have one of all', async () => {
    const database = await newDatabase();
    await onServer(`ALTER DATABASE ${database.name} SET timezone TO 'Pacific/Kiritimati'`);
    const { url, sql, time, faults } = await openNode(database.url);
    const now = new Date();
    const thisMonthMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth());
    await time.waitRound(thisMonthMs - 1);
    const name = `records_${now.toISOString().slice(0, 7).replace('-', '_')}`;
    expect(await monthsOf(url)).toEqual([name, 'records_2091_12', 'records_2092_01']);
    await sql(insertRecords(`unnest(ARRAY[${thisMonthMs - 1}, ${thisMonthMs}])`));
    expect(await sql(places)).toMatchObject([{ place: 'records_earlier' }, { place: name }]);
    expect(faults).toEqual([]);
  });

  test('are created once by nodes that start together', async () => {
    const { url, faults } = await openNode();
    const nodes = await Promise.all([1, 2, 3].map(() => openNode(url)));
    expect(await monthsOf(url)).toHaveLength(2);
    await Promise.all(nodes.map(({ time }) => time.waitRound(inMonth(1))));
    expect(await monthsOf(url)).toHaveLength(3);
    expect([faults, ...nodes.map((node) => node.faults)].flat()).toEqual([]);
  });

  test('get the rows of their month that were written before them', async () => {
    const early = idAt(inMonth(2, 3));
    const { time, sql, faults } = await openNode();
    await sql(insertRecords(`${inMonth(2, 3)}`));
    expect(await sql(places)).toEqual([{ id: early, place: 'records_default' }]);
    await time.waitRound(inMonth(1));
    expect(await sql(places)).toEqual([{ id: early, place: 'records_2092_02' }]);
    expect(faults).toEqual([]);
  });

  test('are not created for a month that has too many rows already, which stay where they are', async () => {
    const { url, sql, faults, time } = await openNode();
    await sql(
      `${insertRecords(`${inMonth(2)}`, `lpad(number::text, 20, '0')`)} FROM generate_series(1, 1001) AS number`,
    );
    await time.waitRound(inMonth(1));
    await time.waitRound(inMonth(2));
    expect(await monthsOf(url)).toEqual(['records_2091_12', 'records_2092_01', 'records_2092_03']);
    expect(await sql('SELECT count(*)::int AS count FROM records_default')).toEqual([{ count: 1_001 }]);
    expect(faults).toEqual([]);
  });

  test('are tried again after a minute when another transaction is in the way, which delays no request for long', async () => {
    const { time, url, faults, store } = await openNode();
    await store.createKey(payingKey, 'hash', 1_000);
    const other = new Client({ connectionString: url });
    await other.connect();
    onTestFinished(() => other.end());
    await other.query('BEGIN; SELECT count(*) FROM records_default');
    time.startRound(inMonth(1));
    await store.open(openedRecord);
    await store.settle(settledRecord);
    await eventually('it gives up', () => time.rounds === 2);
    expect(faults).toEqual([
      [
        'the partitions of this month and the next one could not be created',
        expect.objectContaining({ code: '55P03', reason: 'locked' }),
      ],
    ]);
    expect(await monthsOf(url)).toHaveLength(2);
    await other.query('COMMIT');
    time.startRound(inMonth(1), retryMs);
    await eventually('it is there', async () => (await monthsOf(url)).length === 3);
    expect(faults).toHaveLength(1);
  });

  test('are no reason not to start: a node starts while a transaction is in the way', async () => {
    const { url } = await openNode();
    await onServer('DROP TABLE records_2092_01', url);
    const other = new Client({ connectionString: url });
    await other.connect();
    onTestFinished(() => other.end());
    await other.query('BEGIN; LOCK TABLE records_default IN ACCESS SHARE MODE');
    const { faults, time } = await openNode(url);
    expect(faults).toHaveLength(1);
    await other.query('COMMIT');
    time.startRound(startMs, retryMs);
    await eventually('it is there', async () => (await monthsOf(url)).includes('records_2092_01'));
  });

  test('are dropped when all of their records were removed, and not before, with none of another month', async () => {
    const { store, engine, time, url, sql, faults } = await openNode();
    const retention = createRetention(engine);
    await store.createKey(payingKey, 'hash', 1_000);
    const [first, second] = [idAt(inMonth(0, 20)), idAt(inMonth(1, 2))] as const;
    for (const requestId of [first, second])
      await store.settle({ ...settledRecord, requestId, begun: beginningOf(openedRecord) });
    await retention.removeRecords([{ requestId: first, isLost: false }], inMonth(1) - 1);
    await time.waitRound(inMonth(1, 3));
    // Empty, but a record of its last millisecond could still be listed.
    expect(await monthsOf(url)).toContain('records_2091_12');
    await retention.removeRecords([{ requestId: first, isLost: false }], inMonth(1));
    await time.waitRound(inMonth(1, 4));
    expect(await monthsOf(url)).toEqual(['records_2092_01', 'records_2092_02']);
    await retention.removeRecords([{ requestId: idAt(1), isLost: false }], inMonth(2));
    await time.waitRound(inMonth(2, 3));
    // One record of it was never read, and so not removed.
    expect(await sql(places)).toEqual([{ id: second, place: 'records_2092_01' }]);
    expect(await retention.foldLedgers(async () => {})).toBe(2);
    expect(await verifyLedger(createLedgerAudit(engine))).toMatchObject({ records: 1, imbalanceNanos: 0 });
    // A request of the month that is gone may end late: its record is kept beside those of no month.
    const late = { ...openedRecord, requestId: idAt(inMonth(0, 21)) };
    await store.open(late);
    await store.settle({ ...settledRecord, requestId: late.requestId, begun: beginningOf(late) });
    expect(await sql(places)).toContainEqual({ id: late.requestId, place: 'records_default' });
    expect(faults).toEqual([]);
  });

  test('stay while another transaction reads them, and are dropped an hour later', async () => {
    const { engine, time, url, faults } = await openNode();
    await createRetention(engine).removeRecords([{ requestId: idAt(1), isLost: false }], inMonth(1));
    const other = new Client({ connectionString: url });
    await other.connect();
    onTestFinished(() => other.end());
    await other.query('BEGIN; SELECT count(*) FROM records_2091_12');
    await time.waitRound(startMs);
    expect(faults).toEqual([
      [
        'partitions whose records were removed could not be dropped',
        expect.objectContaining({ code: '55P03' }),
      ],
    ]);
    expect(await monthsOf(url)).toContain('records_2091_12');
    await other.query('COMMIT');
    await time.waitRound(startMs + hourMs);
    await eventually('it is gone', async () => !(await monthsOf(url)).includes('records_2091_12'));
    expect(faults).toHaveLength(1);
  });
});

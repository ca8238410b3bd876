import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createWriteCheck } from '../../src/background/check-writes.ts';
import { keepLease } from '../../src/background/keep-lease.ts';
import { retrySettlements } from '../../src/background/retry-settlements.ts';
import { createSlotStore } from '../../src/storage/postgres/slots/slot-store.ts';
import { createStore } from '../../src/storage/store.ts';
import { openTimedPostgres } from '../support/timed-postgres.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { requestIdFor as idOf } from '../support/request-ids.ts';
import { openedRecord, payingKey } from '../support/stored-rows.ts';
import { postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

/** The lock of the units of statements, written out: nodes of all versions have to take the same one. */
const unitLock = 7_483_911;

/** A node on a database whose time the test moves, and another session. */
async function setUp() {
  const { engine } = await openTimedPostgres();
  onTestFinished(() => engine.close());
  const faults: string[] = [];
  const onFault = (message: string): void => void faults.push(message);
  const store = createStore(engine, { nextId: () => randomUUID(), now: () => 7, report: onFault });
  await store.createKey(payingKey, 'hash', 1_000);
  const other = new Client({ connectionString: engine.database.url });
  await other.connect();
  other.on('error', () => {});
  onTestFinished(() => other.end().catch(() => {}));
  /** Moves the time of the database without a unit, and without ending a transaction of the other session. */
  const timer = new Client({ connectionString: engine.database.url });
  await timer.connect();
  timer.on('error', () => {});
  onTestFinished(() => timer.end().catch(() => {}));
  const move = async (byMs: number) => void (await timer.query('UPDATE test_time SET ms = ms + $1', [byMs]));
  const isWaited = async (): Promise<boolean> => {
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return (await timer.query(waiting)).rowCount !== 0;
  };
  const ages = async () => (await timer.query('SELECT id, now_ms() - renewed_at AS age FROM owners')).rows;
  return { engine, store, other, move, isWaited, ages, faults, onFault };
}

describe.skipIf(postgresAbsence !== null)(`what a process does for itself on PostgreSQL${absent}`, () => {
  test('goes on while another node runs a unit for longer than a lease: it keeps its lease, gives slots and is ready', async () => {
    const { engine, store, other, move, faults, onFault } = await setUp();
    const clock = createFakeClock();
    const lease = keepLease(store, { clock, ready: engine.ready, onEnded: async () => {}, onFault });
    const records = retrySettlements(store, {
      clock,
      onFault,
      spool: null,
      ready: lease.taken,
      isBroken: () => false,
      isLost: () => false,
    });
    await records.recover();
    const slots = createSlotStore(engine, () => store.owner());
    const writes = createWriteCheck(records, clock, () => {});
    const owner = store.owner();
    await other.query(`SELECT pg_advisory_lock(${unitLock})`);
    const limits = { concurrency: 9, requestsPerMinute: 9, queueWaitMs: 0 };
    for (let passedMs = 0; passedMs < 20_000; passedMs += 5_000) {
      await move(5_000);
      clock.advance(5_000);
      await eventually('the lease is renewed', () => clock.scheduled === 2);
      const requestId = idOf(`${passedMs}`);
      expect(await slots.take({ keyId: payingKey.id, requestId, limits, mayWait: false })).toMatchObject({
        verdict: 'granted',
      });
      expect(await records.open({ ...openedRecord, requestId })).toMatchObject({ granted: true });
      expect(await writes.fault()).toBeNull();
    }
    expect([lease.holds, store.owner(), faults]).toEqual([true, owner, []]);
    // Its end does not wait either.
    await lease.stop();
    const rows = await other.query('SELECT id FROM owners');
    expect(rows.rows).toEqual([]);
  });

  test('waits behind no request that waits for a locked account', async () => {
    const { engine, store, other, ages, move } = await setUp();
    await store.renewLease();
    const keyIds = Array.from({ length: 128 }, (_, at) => `key_${at}`);
    await other.query(`INSERT INTO accounts (key_id) SELECT 'key_' || n FROM generate_series(0, 127) AS n`);
    await other.query('BEGIN');
    await other.query('SELECT 1 FROM accounts FOR UPDATE');
    const begun = keyIds.map((keyId) => store.open({ ...openedRecord, requestId: idOf(keyId), keyId }));
    let refused = 0;
    for (const each of begun) each.catch(() => refused++);
    await move(5_000);
    await store.renewLease();
    await store.checkWrites();
    // Each connection refuses one of its sixteen every 1.5 seconds.
    expect(refused).toBeLessThan(32);
    expect(await ages()).toEqual([{ id: store.owner(), age: '0' }]);
    await other.query('COMMIT');
    await Promise.allSettled(begun);
    expect(engine.impaired).toBeNull();
  });

  test('is renewed as a new owner where another node is just ending its lease', async () => {
    const { store, other, isWaited } = await setUp();
    await store.renewLease();
    const before = store.owner();
    await other.query('BEGIN');
    await other.query('DELETE FROM owners WHERE id = $1', [before]);
    const renewed = store.renewLease();
    await eventually('the renewal waits for the ending', isWaited);
    await other.query('COMMIT');
    expect(await renewed).toBe(true);
    expect(store.owner()).not.toBe(before);
    expect((await other.query('SELECT id FROM owners')).rows).toEqual([{ id: store.owner() }]);
  });

  test('is not set back to the past where renewals of the future end while it is renewed', async () => {
    const { engine, store, other, move, isWaited, ages } = await setUp();
    const judge = createStore(engine, { nextId: () => randomUUID(), now: () => 7, report() {} });
    await store.renewLease();
    await move(-3_600_000);
    await judge.renewLease();
    await other.query('BEGIN');
    await other.query('SELECT 1 FROM owners WHERE id = $1 FOR UPDATE', [store.owner()]);
    const looked = judge.endOverLeases();
    await eventually('the look waits for the renewal', isWaited);
    await move(7_000);
    await other.query('UPDATE owners SET renewed_at = now_ms() WHERE id = $1', [store.owner()]);
    await other.query('COMMIT');
    expect(await looked).toEqual([]);
    expect(await ages()).toContainEqual({ id: store.owner(), age: '0' });
  });
});

import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nextId } from '../../src/composition/next-id.ts';
import type { OpenedRecord } from '../../src/domain/money/consumption.ts';
import type { ServerLimits } from '../../src/storage/postgres/connection/client-config.ts';
import { createSlotStore } from '../../src/storage/postgres/slots/slot-store.ts';
import { createStore } from '../../src/storage/store.ts';
import { lookUpRows } from '../../src/storage/statements.ts';
import {
  beginningOf,
  budgetTerms,
  budgetedRecord,
  groupTerms,
  groupedRecord,
  openedRecord,
  payingKey,
  settledRecord,
  twiceBudgetedRecord,
} from '../support/stored-rows.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
const balanceNanos = 1_000;

describe.skipIf(postgresAbsence !== null)(`a beginning on PostgreSQL${absent}`, () => {
  /** A node whose key has a balance, and whose database knows the kinds of the records. */
  async function openNode(unitLimits?: ServerLimits) {
    const engine = await openPostgres(unitLimits === undefined ? {} : { unitLimits });
    onTestFinished(() => engine.close());
    const store = createStore(engine, { nextId, now: () => 7, report: () => {} });
    await store.renewLease();
    await store.createKey(payingKey, 'hash', balanceNanos);
    const slots = createSlotStore(engine, () => store.owner(), store.openingOf);
    const begin = (record: OpenedRecord, limits: { concurrency?: number; requestsPerMinute?: number } = {}) =>
      slots.take({
        keyId: record.keyId,
        requestId: record.requestId,
        limits: { concurrency: 2, requestsPerMinute: 3, queueWaitMs: 0, ...limits },
        mayWait: false,
        opening: record,
      });
    /** A record with another id. */
    const next = (record: OpenedRecord = openedRecord): OpenedRecord => ({
      ...record,
      requestId: `req_${nextId()}`,
    });
    const settle = (record: OpenedRecord) =>
      store.settle({
        ...settledRecord,
        requestId: record.requestId,
        chargeNanos: 0,
        begun: beginningOf(record),
      });
    // The database knows the kinds of the records then. They are too old to count as starts.
    for (const record of [openedRecord, budgetedRecord, groupedRecord, twiceBudgetedRecord]) {
      await store.open(record);
      await settle(record);
    }
    const read = async (sql: string) => lookUpRows(engine, { sql, values: [] });
    const state = async () => ({
      account: await read('SELECT balance, held, last_request, last_hold FROM accounts'),
      open: (await read('SELECT request_id, hold FROM open_requests ORDER BY request_id')).map(
        ({ request_id, hold }) => [request_id, hold],
      ),
      slots: (await read('SELECT request_id FROM slots ORDER BY request_id')).map(
        ({ request_id }) => request_id,
      ),
      starts: Number((await read('SELECT count(*) AS count FROM starts'))[0]?.['count']),
    });
    return { engine, store, slots, begin, next, settle, state };
  }

  test('takes a slot, counts a start, begins the record and sets its hold aside; the settlement ends all of it', async () => {
    const { store, begin, next, settle, state } = await openNode();
    const record = next();
    const { hold } = record;
    expect(await begin(record)).toEqual({
      verdict: 'granted',
      inFlight: 1,
      remainingStarts: 2,
      resetMs: expect.any(Number),
      reservation: { granted: true, holdNanos: hold.nanos, balanceNanos: balanceNanos - hold.nanos },
    });
    expect(await state()).toMatchObject({
      account: [{ balance: balanceNanos - hold.nanos, held: hold.nanos }],
      open: [[record.requestId, hold.nanos]],
      slots: [record.requestId],
      starts: 1,
    });
    await settle(record);
    expect(await state()).toMatchObject({
      account: [{ balance: balanceNanos, held: 0 }],
      open: [],
      slots: [],
      starts: 1,
    });
    await expect(store.settle({ ...settledRecord, requestId: record.requestId })).rejects.toThrow(
      'no open record',
    );
  });

  test.each(['concurrency', 'rate'] as const)(
    'leaves account and records as they were without a slot (%s)',
    async (verdict) => {
      const { begin, next, settle, state } = await openNode();
      const first = next();
      await begin(first);
      if (verdict === 'rate') await settle(first);
      const before = await state();
      const limits = verdict === 'rate' ? { requestsPerMinute: 1 } : { concurrency: 1 };
      const refused = await begin(next(), limits);
      expect(refused).toMatchObject({ verdict, inFlight: verdict === 'rate' ? 0 : 1 });
      expect(refused).not.toHaveProperty('reservation');
      const after = await state();
      expect({ ...after, account: [] }).toEqual({ ...before, account: [] });
      expect(after.account).toMatchObject(
        before.account.map(({ balance, held }) => ({ balance, held, last_request: null, last_hold: null })),
      );
    },
  );

  test('without enough of a balance there is a slot and a start, as before, and no record', async () => {
    const { begin, next, state } = await openNode();
    const dear = { ...next(), hold: { nanos: balanceNanos + 1, leastNanos: balanceNanos + 1 } };
    expect(await begin(dear)).toMatchObject({
      verdict: 'granted',
      reservation: { granted: false, balanceNanos, heldNanos: 0 },
    });
    expect(await state()).toMatchObject({ open: [], slots: [dear.requestId], starts: 1 });
  });

  test.each([
    ['of the key', budgetedRecord, [budgetTerms.id]],
    ['of its group', groupedRecord, [groupTerms.id]],
    ['of both', twiceBudgetedRecord, [groupTerms.id, budgetTerms.id]],
  ])('holds in the budgets %s, and in none without a slot', async (_whose, budgeted, ids) => {
    const { engine, begin, next } = await openNode();
    const held = async () =>
      (
        await lookUpRows(engine, {
          sql: 'SELECT id, held FROM budgets WHERE held > 0 ORDER BY id',
          values: [],
        })
      ).map(({ id, held: nanos }) => [id, nanos]);
    const record = next(budgeted);
    const decision = await begin(record, { concurrency: 1 });
    expect(decision).toMatchObject({ verdict: 'granted', reservation: { granted: true } });
    const all = ids.map((id) => [id, record.hold.nanos]);
    expect(await held()).toEqual(all);
    expect(await begin(next(budgeted), { concurrency: 1 })).toMatchObject({ verdict: 'concurrency' });
    expect(await held()).toEqual(all);
  });

  test('a record of a kind that the database does not know is left to be begun by itself', async () => {
    const { engine, begin, next, state } = await openNode();
    const unnamed = { ...next(), model: 'never seen' };
    expect(await begin(unnamed)).not.toHaveProperty('reservation');
    // A database that was restored has lost a kind that the process knows.
    await engine.run([{ sql: 'ALTER TABLE record_kinds DISABLE TRIGGER USER', values: [] }]);
    await engine.run([{ sql: 'UPDATE record_kinds SET number = -number', values: [] }]);
    const forgotten = next();
    expect(await begin(forgotten)).toMatchObject({ verdict: 'granted', inFlight: 2 });
    expect(await state()).toMatchObject({
      account: [{ balance: balanceNanos, held: 0 }],
      open: [],
      slots: [unnamed.requestId, forgotten.requestId].toSorted(),
    });
  });

  test('that waits for a locked account keeps no slot of its key from being given back', async () => {
    const { engine, slots, begin, next, state } = await openNode({ lockMs: 300, statementMs: 5_000 });
    const running = next();
    await begin(running);
    const other = new Client({ connectionString: engine.database.url });
    await other.connect();
    onTestFinished(() => other.end());
    await other.query('BEGIN; SELECT * FROM accounts FOR UPDATE');
    await expect(begin(next())).rejects.toThrow('lock');
    await slots.release(running.keyId, running.requestId);
    expect(await state()).toMatchObject({ slots: [] });
    await other.query('COMMIT');
  });

  test('a process without a lease begins nothing', async () => {
    const { engine, begin, next, state } = await openNode();
    const before = await state();
    await engine.run([{ sql: 'UPDATE owners SET renewed_at = 0', values: [] }]);
    await expect(begin(next())).rejects.toThrow('the lease of this process is over');
    expect(await state()).toMatchObject({
      open: before.open,
      slots: [],
      account: [{ balance: balanceNanos, held: 0 }],
    });
  });

  test('beginnings and settlements of one key at the same time meet in no deadlock, and leave nothing', async () => {
    const { store, slots, begin, next, settle, state } = await openNode();
    const limits = { concurrency: 8, requestsPerMinute: 10_000 };
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let round = 0; round < 20; round++) {
          const record = next();
          const { verdict } = (await begin(record, limits)) as { readonly verdict: string };
          expect(verdict).toBe('granted');
          await settle(record);
          await slots.release(record.keyId, record.requestId);
        }
      }),
    );
    expect(await state()).toMatchObject({
      account: [{ balance: balanceNanos, held: 0 }],
      open: [],
      slots: [],
      starts: 160,
    });
    expect(await store.countOpen()).toBe(0);
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { termsOf } from '../../src/domain/budgets/budget.ts';
import type { Budget } from '../../src/domain/budgets/budget.ts';
import type { OpenedRecord, RecordBeginning, Reservation } from '../../src/domain/money/consumption.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createRetention } from '../../src/storage/retention.ts';
import type { Store } from '../../src/storage/store.ts';
import { say } from './engine.ts';
import { idOf, joinStore, key, opened, settled } from './store.ts';

/** 100 nano-USD a day, with warnings at 50 and 80. */
const daily: Budget = {
  amountNanos: 100,
  per: 'day',
  timeZone: 'UTC',
  warnAt: [500, 800],
  raise: null,
};

const dayMs = 86_400_000;
const noonMs = Date.parse('2026-11-23T12:00:00Z');

interface Bench {
  readonly keyId: string;
  readonly store: Store;
  readonly engine: Engine;
  /** Begins a request at a time; returns how it was begun, or the refusal. */
  readonly begin: (id: string, hold: number, atMs?: number, least?: number) => Promise<Reservation>;
  readonly settle: (id: string, charge: number) => Promise<number>;
  /** The budget's period as it is stored: its first day, what is spent, held, and the level. */
  readonly period: () => Promise<readonly unknown[]>;
  readonly close: (...ids: readonly string[]) => Promise<number>;
  readonly verify: () => Promise<readonly string[]>;
}

/** The keys that were made: each test has one of its own. */
let count = 0;

async function bench(engine: Engine, balance: number | null, budget = daily): Promise<Bench> {
  const store = joinStore(engine);
  const keyId = `key_${++count}`;
  await store.createKey({ ...key, id: keyId, hasBalance: balance !== null, budget }, keyId, balance);
  const begun = new Map<string, RecordBeginning>();
  const idIn = (name: string): string => idOf(`${keyId} ${name}`, noonMs);
  return {
    keyId,
    store,
    engine,
    async begin(id, hold, atMs = noonMs, least = 1) {
      const terms = termsOf('key', keyId, budget, atMs);
      const {
        hold: asked,
        budgets: _none,
        ...record
      }: OpenedRecord = {
        ...opened('', hold, least),
        requestId: idIn(id),
        keyId,
      };
      const reservation = await store.open({ ...record, hold: asked, budgets: [terms] });
      const { requestId: _id, ...beginning } = record;
      const { startMs, endMs } = reservation.periods?.[0] ?? terms;
      const holdNanos = reservation.granted && balance !== null ? (reservation.holdNanos ?? 0) : 0;
      const held = reservation.granted ? (reservation.holdNanos ?? 0) : 0;
      begun.set(id, { ...beginning, holdNanos, budgets: [{ ...terms, startMs, endMs, holdNanos: held }] });
      return reservation;
    },
    settle: (id, charge) =>
      store.settle({
        ...settled('', charge),
        requestId: idIn(id),
        begun: begun.get(id) ?? settled('').begun,
      }),
    async period() {
      const { id } = termsOf('key', keyId, budget, noonMs);
      const found = (await store.budgetPeriods([id])).get(id);
      if (found === undefined) return [];
      const { startMs, spentNanos, heldNanos, level } = found;
      return [new Date(startMs).toISOString().slice(0, 10), spentNanos, heldNanos, level];
    },
    close: (...ids) => store.closeAsLost(ids.map(idIn)),
    async verify() {
      const { faults } = await verifyLedger(createLedgerAudit(engine));
      return faults.filter((fault) => fault.includes(`${keyId} `));
    },
  };
}

/** What every engine must make of requests of keys with a budget. */
export function describeBudgets(name: string, open: () => Promise<Engine>): void {
  describe(`${name}: budgets`, () => {
    let shared: Engine;
    beforeAll(async () => {
      shared = await open();
    });
    afterAll(() => shared.close());

    test('hold what a request may cost, and are charged what it does', async () => {
      const { begin, settle, period, verify } = await bench(shared, null);
      expect(await begin('a', 30)).toMatchObject({ granted: true, holdNanos: 30, balanceNanos: null });
      expect(await period()).toEqual(['2026-11-23', 0, 30, 0]);
      expect(await verify()).toEqual([]);
      await settle('a', 12);
      expect(await period()).toEqual(['2026-11-23', 12, 0, 0]);
      expect(await verify()).toEqual([]);
    });

    test('give a request what is left, and refuse the next one without writing a record', async () => {
      const { keyId, engine, begin, settle, period, verify } = await bench(shared, null);
      expect(await begin('a', 70)).toMatchObject({ granted: true, holdNanos: 70 });
      expect(await begin('b', 70)).toMatchObject({ granted: true, holdNanos: 30 });
      expect(await begin('c', 1)).toMatchObject({
        granted: false,
        balanceNanos: null,
        periods: [{ spentNanos: 0, heldNanos: 100 }],
      });
      const written = await engine.read([say('SELECT 1 FROM open_requests WHERE key_id = ?', keyId)]);
      expect(written[0]).toHaveLength(2);
      expect(await begin('free', 0)).toMatchObject({ granted: true, holdNanos: 0 });
      await settle('a', 75);
      await settle('b', 40);
      expect(await period()).toEqual(['2026-11-23', 115, 0, 800]);
      expect(await begin('d', 1)).toMatchObject({
        granted: false,
        periods: [{ spentNanos: 115, heldNanos: 0 }],
      });
      expect(await verify()).toEqual([]);
    });

    test('refuse a hold that does not fit as a whole, where the whole of it is asked for', async () => {
      const { begin, period } = await bench(shared, null);
      expect(await begin('a', 60, noonMs, 60)).toMatchObject({ granted: true });
      expect(await begin('b', 60, noonMs, 60)).toMatchObject({ granted: false });
      expect(await begin('c', 40, noonMs, 40)).toMatchObject({ granted: true, holdNanos: 40 });
      expect(await period()).toEqual(['2026-11-23', 0, 100, 0]);
    });

    test.each([
      ['the balance is smaller', 40, 40, 0],
      ['the budget is smaller', 500, 100, 400],
    ])('and balances both pay: where %s, that decides', async (_which, balance, hold, left) => {
      const { keyId, store, begin, settle, period, verify } = await bench(shared, balance);
      expect(await begin('a', 300)).toMatchObject({ granted: true, holdNanos: hold, balanceNanos: left });
      expect((await store.accounts([keyId])).get(keyId)).toMatchObject({ heldNanos: hold });
      expect(await begin('b', 300)).toMatchObject({ granted: false, balanceNanos: left });
      await settle('a', 25);
      expect(await period()).toEqual(['2026-11-23', 25, 0, 0]);
      expect((await store.accounts([keyId])).get(keyId)).toEqual({
        balanceNanos: balance - 25,
        heldNanos: 0,
        spentNanos: 25,
      });
      expect(await verify()).toEqual([]);
    });

    test('are full again with the next period, once, in whatever order and number requests come', async () => {
      const { begin, settle, period, verify } = await bench(shared, null);
      await begin('a', 100);
      await settle('a', 100);
      const asked = await Promise.all(
        Array.from({ length: 20 }, (_, at) => begin(`b${at}`, 10, noonMs + (at % 2) * dayMs)),
      );
      const granted = asked.filter((found) => found.granted);
      expect(granted.reduce((sum, { holdNanos }) => sum + (holdNanos ?? 0), 0)).toBe(100);
      expect(await period()).toEqual(['2026-11-24', 0, 100, 0]);
      expect(await verify()).toEqual([]);
    });

    test('stay in the later period for a process whose clock is behind', async () => {
      const { begin, settle, period, verify } = await bench(shared, null);
      await begin('a', 60, noonMs + dayMs);
      const late = await begin('b', 30, noonMs);
      expect(late).toMatchObject({ granted: true, periods: [{ startMs: Date.parse('2026-11-24') }] });
      await settle('a', 60);
      await settle('b', 30);
      expect(await period()).toEqual(['2026-11-24', 90, 0, 800]);
      expect(await begin('c', 30, noonMs)).toMatchObject({ granted: true, holdNanos: 10 });
      expect(await verify()).toEqual([]);
    });

    test('count a request in the period in which it began: nothing of it is in the next one', async () => {
      const { begin, settle, period, verify } = await bench(shared, null);
      await begin('over midnight', 90);
      await begin('next', 20, noonMs + dayMs);
      expect(await period()).toEqual(['2026-11-24', 0, 20, 0]);
      await settle('over midnight', 95);
      expect(await period()).toEqual(['2026-11-24', 0, 20, 0]);
      await settle('next', 20);
      expect(await period()).toEqual(['2026-11-24', 20, 0, 0]);
      expect(await verify()).toEqual([]);
    });

    test('get back what a request held that was closed as lost, and its charge if it is settled later', async () => {
      const { close, begin, settle, period, verify } = await bench(shared, null);
      await begin('early', 10, noonMs - dayMs);
      await begin('a', 60);
      await begin('b', 30);
      expect(await close('early', 'a', 'b')).toBe(3);
      expect(await period()).toEqual(['2026-11-23', 0, 0, 0]);
      expect(await verify()).toEqual([]);
      await settle('a', 55);
      await settle('early', 10);
      expect(await period()).toEqual(['2026-11-23', 55, 0, 500]);
      await expect(settle('a', 55)).rejects.toThrow('no open record');
      expect(await period()).toEqual(['2026-11-23', 55, 0, 500]);
      expect(await verify()).toEqual([]);
    });

    test('are charged for a request whose beginning and period the database has forgotten', async () => {
      const { keyId, engine, begin, settle, period, verify } = await bench(shared, null);
      await begin('yesterday', 10, noonMs - dayMs);
      await settle('yesterday', 10);
      const before = (
        await engine.read([say('SELECT * FROM budgets WHERE id = ?', `${keyId} day UTC`)])
      )[0]?.[0];
      await begin('a', 60);
      await engine.run([
        say('DELETE FROM open_rows WHERE account = (SELECT number FROM accounts WHERE key_id = ?)', keyId),
        say(
          'UPDATE budgets SET period_start = ?, period_end = ?, spent = 10, held = 0 WHERE id = ?',
          Number(before?.['period_start']),
          Number(before?.['period_end']),
          `${keyId} day UTC`,
        ),
      ]);
      await settle('a', 55);
      expect(await period()).toEqual(['2026-11-23', 55, 0, 500]);
      const [row] = (
        await engine.read([say('SELECT * FROM records WHERE key_id = ? AND charge = 55', keyId)])
      ).flat();
      expect(row).toMatchObject({ budget: `${keyId} day UTC`, budget_hold: 60, hold: 0 });
      expect(await verify()).toEqual([]);
    });

    test('do not begin a request twice, also where it got all that was left', async () => {
      const { begin, period } = await bench(shared, null);
      await begin('a', 100);
      await expect(begin('a', 100)).rejects.toThrow(/UNIQUE|duplicate key/);
      expect(await period()).toEqual(['2026-11-23', 0, 100, 0]);
    });

    test('that were tampered with are found by the audit', async () => {
      const { keyId, engine, begin, settle, verify } = await bench(shared, null);
      await begin('a', 60);
      await settle('a', 55);
      await engine.run([
        say('UPDATE budgets SET spent = spent - 5, held = held + 7 WHERE id = ?', `${keyId} day UTC`),
      ]);
      expect(await verify()).toEqual([
        `budget ${keyId} day UTC: holds 7, but its open requests hold 0`,
        `budget ${keyId} day UTC: spent 50, but its records were charged 55`,
      ]);
    });

    test('may have spent more than the records of their period add up to, once some of those were removed', async () => {
      const { keyId, engine, begin, settle, period, verify } = await bench(shared, null);
      for (const id of ['a', 'b']) await begin(id, 30);
      await settle('a', 30);
      await settle('b', 20);
      await engine.run([
        say(
          `INSERT INTO ledger_rows (key_id, number, created_at, kind, delta) VALUES (?, 1, 1, 'charge', -30)`,
          keyId,
        ),
        say(
          'DELETE FROM record_rows WHERE charge_number = 1 AND account = (SELECT number FROM accounts WHERE key_id = ?)',
          keyId,
        ),
      ]);
      expect(await verify()).toEqual([`budget ${keyId} day UTC: spent 50, but its records were charged 20`]);
      // Up to the beginning of the period: a request may have arrived before it, and waited.
      await createRetention(engine).removeRecords(
        [{ requestId: idOf(`${keyId} a`, noonMs), isLost: false }],
        Date.parse('2026-11-23'),
      );
      expect(await verify()).toEqual([]);
      expect(await period()).toEqual(['2026-11-23', 50, 0, 500]);
      await engine.run([say('DELETE FROM record_removals')]);
    });

    test('are changed setting by setting, and a change of some makes none where there is none', async () => {
      const { keyId, store } = await bench(shared, null);
      const raise = { nanos: 50, untilMs: noonMs };
      const change = async (budget: Partial<Budget> | null) =>
        (await store.updateKey(keyId, { budget }))?.budget;
      expect(await change({ raise })).toEqual({ ...daily, raise });
      expect(await change({ amountNanos: 2 ** 53 - 1, warnAt: [] })).toEqual({
        ...daily,
        amountNanos: 2 ** 53 - 1,
        warnAt: [],
        raise,
      });
      expect(await change({ raise: null })).toMatchObject({ raise: null });
      expect(await change(null)).toBeNull();
      expect(await change({ raise })).toBeNull();
      expect(await change({ amountNanos: 5, per: 'month' })).toEqual({
        amountNanos: 5,
        per: 'month',
        timeZone: 'UTC',
        warnAt: [],
        raise: null,
      });
    });
  });
}

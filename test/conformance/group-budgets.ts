import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { budgetIdOf, termsOf } from '../../src/domain/budgets/budget.ts';
import type { Budget } from '../../src/domain/budgets/budget.ts';
import type { RecordBeginning, Reservation } from '../../src/domain/money/consumption.ts';
import { groupIdOf } from '../../src/domain/limits/groups.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import type { Store } from '../../src/storage/store.ts';
import { say } from './engine.ts';
import { idOf, joinStore, key, opened, settled } from './store.ts';

/** 100 nano-USD a month for all keys of the group, with warnings at 50 and 80. */
const monthly: Budget = { amountNanos: 100, per: 'month', timeZone: 'UTC', warnAt: [500, 800], raise: null };

/** 60 nano-USD a day for one key. */
const daily: Budget = { amountNanos: 60, per: 'day', timeZone: 'UTC', warnAt: [500], raise: null };

const dayMs = 86_400_000;
const noonMs = Date.parse('2026-11-23T12:00:00Z');
const nextMonthMs = Date.parse('2026-12-01T12:00:00Z');

/** A key of the group. */
interface Member {
  readonly keyId: string;
  /** Begins a request; returns how it was begun, or the refusal. */
  readonly begin: (id: string, hold: number, atMs?: number, least?: number) => Promise<Reservation>;
  readonly settle: (id: string, charge: number) => Promise<number>;
  readonly close: (...ids: readonly string[]) => Promise<number>;
  /** The first day of its own budget's period, what is spent, held, and the level. */
  readonly period: () => Promise<readonly unknown[]>;
  readonly account: () => Promise<unknown>;
}

interface Group {
  readonly budgetId: string;
  readonly store: Store;
  /** Makes a key of the group, with a budget of its own and a balance, or without. */
  readonly join: (own?: Budget | null, balance?: number | null) => Promise<Member>;
  /** As `Member.period`, of the group. */
  readonly period: () => Promise<readonly unknown[]>;
  /** The faults that the audit finds in the group and its keys. */
  readonly verify: () => Promise<readonly string[]>;
}

/** The groups that were made: each test has one of its own. */
let count = 0;

function makeGroup(engine: Engine, budget: Budget = monthly): Group {
  const store = joinStore(engine);
  const name = `group-${++count}`;
  const groupId = groupIdOf(name);
  const budgetId = budgetIdOf(groupId, budget);
  const ids = [`${groupId} `];
  const periodOf = async (id: string): Promise<readonly unknown[]> => {
    const found = (await store.budgetPeriods([id])).get(id);
    if (found === undefined) return [];
    const { startMs, spentNanos, heldNanos, level } = found;
    return [new Date(startMs).toISOString().slice(0, 10), spentNanos, heldNanos, level];
  };
  const join = async (own: Budget | null = null, balance: number | null = null): Promise<Member> => {
    const keyId = `member_${name}_${ids.length}`;
    ids.push(`${keyId} `);
    const settings = { id: keyId, name: keyId, hasBalance: balance !== null, budget: own, group: name };
    await store.createKey({ ...key, ...settings }, keyId, balance);
    const begun = new Map<string, RecordBeginning>();
    const idIn = (request: string): string => idOf(`${keyId} ${request}`, noonMs);
    return {
      keyId,
      async begin(id, hold, atMs = noonMs, least = 1) {
        const ofGroup = termsOf('group', groupId, budget, atMs);
        const wanted = own === null ? [ofGroup] : [termsOf('key', keyId, own, atMs), ofGroup];
        const { requestId: _id, hold: asked, budgets: _none, ...rest } = opened('', hold, least);
        const record = { ...rest, keyId };
        const reservation = await store.open({
          ...record,
          requestId: idIn(id),
          hold: asked,
          budgets: wanted,
        });
        const held = reservation.granted ? (reservation.holdNanos ?? 0) : 0;
        const budgets = wanted.map((terms, at) => {
          const { startMs, endMs } = reservation.periods?.[at] ?? terms;
          return Object.assign({}, terms, { startMs, endMs, holdNanos: held });
        });
        begun.set(id, { ...record, holdNanos: balance === null ? 0 : held, budgets });
        return reservation;
      },
      settle: (id, charge) =>
        store.settle({
          ...settled('', charge),
          requestId: idIn(id),
          begun: begun.get(id) ?? settled('').begun,
        }),
      close: (...closed) => store.closeAsLost(closed.map(idIn)),
      period: () => periodOf(budgetIdOf(keyId, own ?? daily)),
      account: async () => (await store.accounts([keyId])).get(keyId),
    };
  };
  return {
    budgetId,
    store,
    join,
    period: () => periodOf(budgetId),
    async verify() {
      const { faults } = await verifyLedger(createLedgerAudit(engine));
      return faults.filter((fault) => ids.some((id) => fault.includes(id)));
    },
  };
}

/** What every engine must make of requests of keys whose group has a budget. */
export function describeGroupBudgets(name: string, open: () => Promise<Engine>): void {
  describe(`${name}: budgets of groups`, () => {
    let engine: Engine;
    beforeAll(async () => {
      engine = await open();
    });
    afterAll(() => engine.close());
    const setUp = (budget?: Budget): Group => makeGroup(engine, budget);
    describe('hold and pay', () => {
      describeHolds(setUp);
    });
    describe('periods', () => {
      describePeriods(setUp);
    });
    describe('ends that are late', () => {
      describeLateEnds(setUp, () => engine);
    });
  });
}

type SetUp = (budget?: Budget) => Group;

function describeHolds(setUp: SetUp): void {
  test('a key without a budget of its own holds in that of its group, and pays there', async () => {
    const { join, period, verify } = setUp();
    const { begin, settle, period: own } = await join();
    expect(await begin('a', 30)).toMatchObject({ granted: true, holdNanos: 30, balanceNanos: null });
    expect(await period()).toEqual(['2026-11-01', 0, 30, 0]);
    await settle('a', 12);
    expect(await period()).toEqual(['2026-11-01', 12, 0, 0]);
    expect(await own()).toEqual([]);
    expect(await verify()).toEqual([]);
  });

  test('a key with a budget of its own holds in both, and pays in both', async () => {
    const { join, period, verify } = setUp();
    const { begin, settle, period: own } = await join(daily);
    expect(await begin('a', 55)).toMatchObject({
      granted: true,
      holdNanos: 55,
      periods: [{ startMs: Date.parse('2026-11-23') }, { startMs: Date.parse('2026-11-01') }],
    });
    expect([await own(), await period()]).toEqual([
      ['2026-11-23', 0, 55, 0],
      ['2026-11-01', 0, 55, 0],
    ]);
    expect(await verify()).toEqual([]);
    await settle('a', 52);
    expect([await own(), await period()]).toEqual([
      ['2026-11-23', 52, 0, 500],
      ['2026-11-01', 52, 0, 500],
    ]);
    expect(await verify()).toEqual([]);
  });

  test.each([
    ['the balance', 20, 60, 100, 20],
    ['the budget of the key', 200, 30, 100, 30],
    ['the budget of the group', 200, 60, 40, 40],
    ['the budget of the group, without a balance,', null, 60, 40, 40],
  ])(
    'where %s has the least room, a request holds that much everywhere, and the next one is refused',
    async (_which, balance, own, shared, hold) => {
      const group = setUp({ ...monthly, amountNanos: shared });
      const member = await group.join({ ...daily, amountNanos: own }, balance);
      expect(await member.begin('a', 70)).toMatchObject({ granted: true, holdNanos: hold });
      expect((await member.period()).slice(1, 3)).toEqual([0, hold]);
      expect((await group.period()).slice(1, 3)).toEqual([0, hold]);
      expect(await member.begin('b', 70)).toMatchObject({
        granted: false,
        periods: [{ heldNanos: hold }, { heldNanos: hold }],
      });
      await member.settle('a', 9);
      expect((await member.period()).slice(1, 3)).toEqual([9, 0]);
      expect((await group.period()).slice(1, 3)).toEqual([9, 0]);
      expect(await member.account()).toEqual({
        balanceNanos: balance === null ? null : balance - 9,
        heldNanos: 0,
        spentNanos: 9,
      });
      expect(await group.verify()).toEqual([]);
    },
  );

  test.each(['key', 'group'])(
    'a request is refused as a whole where the budget of the %s has no room for all of it',
    async (which) => {
      const group = setUp({ ...monthly, amountNanos: which === 'group' ? 50 : 500 });
      const member = await group.join({ ...daily, amountNanos: which === 'key' ? 50 : 500 }, 1_000);
      expect(await member.begin('a', 30, noonMs, 30)).toMatchObject({ granted: true });
      expect(await member.begin('b', 30, noonMs, 30)).toMatchObject({ granted: false });
      expect(await member.begin('c', 20, noonMs, 20)).toMatchObject({ granted: true, holdNanos: 20 });
      expect((await member.period()).slice(1, 3)).toEqual([0, 50]);
      expect((await group.period()).slice(1, 3)).toEqual([0, 50]);
      expect(await member.account()).toMatchObject({ heldNanos: 50 });
      expect(await group.verify()).toEqual([]);
    },
  );

  test('several keys share the budget of their group, and each is kept to its own beside', async () => {
    const { join, period, verify } = setUp();
    const [one, two, third] = [await join(daily), await join(), await join(daily)];
    expect(await one.begin('a', 80)).toMatchObject({ holdNanos: 60 });
    expect(await two.begin('a', 80)).toMatchObject({ holdNanos: 40 });
    expect(await third.begin('a', 1)).toMatchObject({
      granted: false,
      periods: [{ heldNanos: 0 }, { spentNanos: 0, heldNanos: 100 }],
    });
    await one.settle('a', 10);
    expect(await period()).toEqual(['2026-11-01', 10, 40, 0]);
    expect(await third.begin('b', 80)).toMatchObject({ granted: true, holdNanos: 50 });
    await third.settle('b', 5);
    await two.settle('a', 45);
    expect(await period()).toEqual(['2026-11-01', 60, 0, 500]);
    expect([await one.period(), await third.period()]).toEqual([
      ['2026-11-23', 10, 0, 0],
      ['2026-11-23', 5, 0, 0],
    ]);
    expect(await verify()).toEqual([]);
  });

  test('requests of several keys at once hold no more than the group has', async () => {
    const { join, period, verify } = setUp();
    const members = await Promise.all([join(), join(daily), join(null, 1_000), join(daily, 1_000)]);
    const asked = await Promise.all(
      Array.from({ length: 24 }, (_, at) => (members[at % 4] ?? members[0]).begin(`${at}`, 9)),
    );
    const holds = asked.map((found) => (found.granted ? (found.holdNanos ?? 0) : 0));
    expect(holds.reduce((sum, hold) => sum + hold, 0)).toBe(100);
    expect(await period()).toEqual(['2026-11-01', 0, 100, 0]);
    expect(await verify()).toEqual([]);
  });

  test('a request that costs nothing is begun where nothing is left, and none is begun twice', async () => {
    const { join, period } = setUp();
    const { begin } = await join(daily);
    await begin('a', 60);
    expect(await begin('free', 0)).toMatchObject({ granted: true, holdNanos: 0 });
    await expect(begin('a', 60)).rejects.toThrow(/UNIQUE|duplicate key/);
    expect(await period()).toEqual(['2026-11-01', 0, 60, 0]);
  });

  test('a key whose group is changed counts in the new one, and its running request in the old one', async () => {
    const [before, after] = [setUp(), setUp()];
    const old = await before.join(daily);
    await old.begin('a', 20);
    const moved = await after.join(daily);
    await moved.begin('b', 30);
    await old.settle('a', 15);
    expect([await before.period(), await after.period()]).toEqual([
      ['2026-11-01', 15, 0, 0],
      ['2026-11-01', 0, 30, 0],
    ]);
    expect([...(await before.verify()), ...(await after.verify())]).toEqual([]);
  });
}

function describePeriods(setUp: SetUp): void {
  test('are those of each calendar: the day of the key begins anew while the month of the group goes on', async () => {
    const { join, period, verify } = setUp();
    const { begin, settle, period: own } = await join(daily);
    await begin('a', 60);
    await settle('a', 60);
    expect(await begin('b', 60)).toMatchObject({ granted: false });
    expect(await begin('c', 60, noonMs + dayMs)).toMatchObject({ granted: true, holdNanos: 40 });
    expect([await own(), await period()]).toEqual([
      ['2026-11-24', 0, 40, 0],
      ['2026-11-01', 60, 40, 500],
    ]);
    expect(await begin('d', 60, nextMonthMs)).toMatchObject({ granted: true, holdNanos: 60 });
    expect([await own(), await period()]).toEqual([
      ['2026-12-01', 0, 60, 0],
      ['2026-12-01', 0, 60, 0],
    ]);
    await settle('c', 40);
    await settle('d', 50);
    expect([await own(), await period()]).toEqual([
      ['2026-12-01', 50, 0, 500],
      ['2026-12-01', 50, 0, 500],
    ]);
    expect(await verify()).toEqual([]);
  });

  test('count a request in those in which it began: over midnight in the month, and no more in the day', async () => {
    const { join, period, verify } = setUp();
    const [one, other] = [await join(daily), await join(daily)];
    await one.begin('over midnight', 50);
    await one.begin('next', 20, noonMs + dayMs);
    await other.begin('a', 10, noonMs + dayMs);
    await one.settle('over midnight', 45);
    expect([await one.period(), await period()]).toEqual([
      ['2026-11-24', 0, 20, 0],
      ['2026-11-01', 45, 30, 0],
    ]);
    await one.settle('next', 20);
    await other.settle('a', 10);
    expect(await period()).toEqual(['2026-11-01', 75, 0, 500]);
    expect(await verify()).toEqual([]);
  });

  test('of a group are refilled once, also where keys come from processes with other clocks', async () => {
    const { join, period, verify } = setUp();
    const members = await Promise.all([join(), join(daily), join(), join(daily)]);
    for (const { begin, settle } of members) {
      await begin('before', 25);
      await settle('before', 25);
    }
    const asked = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        (members[at % 4] ?? members[0]).begin(`b${at}`, 10, at % 3 === 0 ? nextMonthMs : noonMs),
      ),
    );
    const holds = asked.map((found) => (found.granted ? (found.holdNanos ?? 0) : 0));
    expect(holds.reduce((sum, hold) => sum + hold, 0)).toBe(100);
    expect(await period()).toEqual(['2026-12-01', 0, 100, 0]);
    expect(await verify()).toEqual([]);
  });

  test('of a clock that is behind are the later ones that are there, for each budget by itself', async () => {
    const { join, period, verify } = setUp();
    const [ahead, behind] = [await join(daily), await join(daily)];
    await ahead.begin('a', 50, nextMonthMs);
    expect(await behind.begin('b', 60)).toMatchObject({
      granted: true,
      holdNanos: 50,
      periods: [{ startMs: Date.parse('2026-11-23') }, { startMs: Date.parse('2026-12-01') }],
    });
    await behind.settle('b', 50);
    await ahead.settle('a', 30);
    expect([await behind.period(), await period()]).toEqual([
      ['2026-11-23', 50, 0, 500],
      ['2026-12-01', 80, 0, 800],
    ]);
    expect(await verify()).toEqual([]);
  });
}

function describeLateEnds(setUp: SetUp, engine: () => Engine): void {
  test('closed as lost, a request gives its hold back in both, and is charged in both when it is settled later', async () => {
    const { join, period, verify } = setUp();
    const [one, other] = [await join(daily), await join()];
    await one.begin('early', 10, noonMs - dayMs);
    await one.begin('a', 30);
    await other.begin('a', 30);
    await other.begin('b', 20);
    expect(await one.close('early', 'a')).toBe(2);
    expect(await other.close('a')).toBe(1);
    expect([await one.period(), await period()]).toEqual([
      ['2026-11-23', 0, 0, 0],
      ['2026-11-01', 0, 20, 0],
    ]);
    expect(await verify()).toEqual([]);
    await one.settle('a', 25);
    await other.settle('a', 30);
    await one.settle('early', 10);
    expect([await one.period(), await period()]).toEqual([
      ['2026-11-23', 25, 0, 0],
      ['2026-11-01', 65, 20, 500],
    ]);
    await expect(one.settle('a', 25)).rejects.toThrow('no open record');
    expect(await period()).toEqual(['2026-11-01', 65, 20, 500]);
    expect(await verify()).toEqual([]);
  });

  test('closed as lost after the month is over, a request takes nothing from the next one', async () => {
    const { join, period, verify } = setUp();
    const { begin, settle, close } = await join();
    await begin('a', 30);
    await begin('next', 40, nextMonthMs);
    expect(await close('a')).toBe(1);
    expect(await period()).toEqual(['2026-12-01', 0, 40, 0]);
    await settle('a', 30);
    expect(await period()).toEqual(['2026-12-01', 0, 40, 0]);
    expect(await verify()).toEqual([]);
  });

  test('a request whose beginning and periods the database has forgotten is charged in both', async () => {
    const { budgetId, join, period, verify } = setUp();
    const { keyId, begin, settle, period: own } = await join(daily);
    await begin('a', 55);
    await engine().run([
      say('DELETE FROM open_rows WHERE account = (SELECT number FROM accounts WHERE key_id = ?)', keyId),
      say('DELETE FROM budgets WHERE id IN (?, ?)', budgetId, budgetIdOf(keyId, daily)),
    ]);
    await settle('a', 52);
    expect([await own(), await period()]).toEqual([
      ['2026-11-23', 52, 0, 500],
      ['2026-11-01', 52, 0, 500],
    ]);
    const [row] = (await engine().read([say('SELECT * FROM records WHERE key_id = ?', keyId)])).flat();
    expect(row).toMatchObject({
      budget: budgetIdOf(keyId, daily),
      group_budget: budgetId,
      budget_hold: 55,
      hold: 0,
    });
    expect([Number(row?.['budget_period']), Number(row?.['group_period'])]).toEqual(
      ['2026-11-23', '2026-11-01'].map(Date.parse),
    );
    expect(await verify()).toEqual([]);
  });

  test('a group whose budget was tampered with is found by the audit, whichever keys have spent it', async () => {
    const { budgetId, join, verify } = setUp();
    const [one, other] = [await join(daily), await join()];
    for (const { begin, settle } of [one, other]) {
      await begin('a', 30);
      await settle('a', 25);
    }
    await other.begin('b', 10);
    expect(await verify()).toEqual([]);
    await engine().run([say('UPDATE budgets SET spent = spent - 5, held = held + 7 WHERE id = ?', budgetId)]);
    expect(await verify()).toEqual([
      `budget ${budgetId}: holds 17, but its open requests hold 10`,
      `budget ${budgetId}: spent 45, but its records were charged 50`,
    ]);
  });
}

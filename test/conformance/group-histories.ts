import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { budgetIdOf, claimOf } from '../../src/domain/budgets/budget.ts';
import type { Budget, BudgetClaim } from '../../src/domain/budgets/budget.ts';
import { budgetPeriods } from '../../src/domain/budgets/calendar.ts';
import type { RecordBeginning } from '../../src/domain/consumption.ts';
import { groupIdOf } from '../../src/domain/groups.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import type { Store } from '../../src/storage/store.ts';
import { propertyRun } from '../support/property-run.ts';
import { zones } from '../support/reference-calendar.ts';
import { joinStore, key, opened, settled } from './store.ts';

const budget = fc.record({
  amountNanos: fc.integer({ min: 1, max: 150 }),
  per: fc.constantFrom(...budgetPeriods),
  timeZone: fc.constantFrom(...zones),
});

/** A key: its own budget and its balance, or `null` for none; and of which group it is first. */
const member = fc.record({
  own: fc.option(budget),
  balance: fc.option(fc.integer({ min: 0, max: 300 })),
  isOfSecond: fc.boolean(),
});

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('begin' as const),
      /** Requests that begin at once, in turn on both processes: which key, and what it holds. */
      asked: fc.array(fc.record({ which: fc.nat(3), nanos: fc.nat(60) }), { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      which: fc.nat(30),
      /** The part of the hold that is charged. */
      part: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lose' as const), which: fc.nat(30) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('change group' as const), which: fc.nat(3) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('move' as const),
      byMs: fc.oneof(fc.integer({ min: 0, max: 7_200_000 }), fc.integer({ min: 0, max: 40 * 86_400_000 })),
    }),
  },
);

const history = fc.record({
  groups: fc.tuple(budget, budget),
  members: fc.array(member, { minLength: 2, maxLength: 4 }),
  startMs: fc.integer({ min: Date.UTC(2005, 0, 1), max: Date.UTC(2035, 0, 1) }),
  isStrict: fc.boolean(),
  /** By how much the clock of the second process is ahead, in milliseconds. */
  aheadMs: fc.oneof(fc.constant(0), fc.integer({ min: -7_200_000, max: 7_200_000 })),
  steps: fc.array(step, { maxLength: 30, size: 'max' }),
});

type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** A budget as it is claimed, by the id of its owner. */
interface Owned {
  readonly ownerId: string;
  readonly budget: Budget;
}

/** A request that was begun, as this test keeps it. */
interface Begun {
  readonly id: string;
  readonly hold: number;
  readonly beginning: RecordBeginning;
  state: 'open' | 'lost' | 'settled';
  wasLost: boolean;
  charge: number;
}

/** Requests of several keys in two groups, on two processes with clocks of their own, which also end late or are lost. */
export function describeGroupHistories(name: string, open: () => Promise<Engine>, runs: number): void {
  let engine: Engine;
  let count = 0;
  beforeAll(async () => {
    engine = await open();
  });
  afterAll(() => engine.close());

  // oxlint-disable-next-line vitest/expect-expect -- `Played` asserts.
  test(
    `${name}: no budget of a group or of its keys is exceeded or refilled twice, whatever the calendars and the order of ends`,
    { timeout: 120_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(history, (made) => new Played(engine, `${name}_${++count}`, made).play()),
        propertyRun(runs),
      );
    },
  );
}

class Played {
  readonly #engine: Engine;
  readonly #made: History;
  readonly #name: string;
  readonly #groups: readonly [Owned, Owned];
  readonly #keys: readonly Owned[];
  /** Of which group each key is now: 0 or 1. */
  readonly #groupOf: number[];
  readonly #stores: readonly [Store, Store];
  readonly #requests: Begun[] = [];
  /** The last start of the stored period of each budget. */
  readonly #starts = new Map<string, number>();
  #nowMs: number;

  constructor(engine: Engine, name: string, made: History) {
    const whole = (given: History['groups'][0]): Budget => ({ ...given, warnAt: [500, 1_000], raise: null });
    const [first, second] = made.groups;
    this.#engine = engine;
    this.#made = made;
    this.#name = name;
    this.#groups = [
      { ownerId: groupIdOf(`${name}-0`), budget: whole(first) },
      { ownerId: groupIdOf(`${name}-1`), budget: whole(second) },
    ];
    this.#keys = made.members.flatMap(({ own }, at) =>
      own === null ? [] : [{ ownerId: this.#keyOf(at), budget: whole(own) }],
    );
    this.#groupOf = made.members.map(({ isOfSecond }) => (isOfSecond ? 1 : 0));
    this.#stores = [joinStore(engine), joinStore(engine)];
    this.#nowMs = made.startMs;
  }

  #keyOf(at: number): string {
    return `member_${this.#name}_${at}`;
  }

  async play(): Promise<void> {
    for (const [at, { balance }] of this.#made.members.entries()) {
      const id = this.#keyOf(at);
      await this.#stores[0].createKey({ ...key, id, name: id, hasBalance: balance !== null }, id, balance);
    }
    for (const made of this.#made.steps) {
      if (made.kind === 'begin') await this.#begin(made.asked);
      else if (made.kind === 'settle') await this.#settle(made.which, made.part);
      else if (made.kind === 'lose') await this.#lose(made.which);
      else if (made.kind === 'move') this.#nowMs += made.byMs;
      else this.#groupOf[made.which] = 1 - (this.#groupOf[made.which] ?? 0);
      await this.#check();
    }
    const { faults } = await verifyLedger(createLedgerAudit(this.#engine));
    areEqual(
      faults.filter((fault) => fault.includes(`${this.#name}-`) || fault.includes(`member_${this.#name}_`)),
      [],
    );
  }

  /** What a key asks of its own budget and of that of its group, in this order. */
  #claimsOf(at: number, atMs: number): readonly BudgetClaim[] {
    const own = this.#keys.find(({ ownerId }) => ownerId === this.#keyOf(at));
    const group = this.#groups[this.#groupOf[at] === 1 ? 1 : 0];
    return [
      ...(own === undefined ? [] : [claimOf('key', own.ownerId, own.budget, atMs)]),
      claimOf('group', group.ownerId, group.budget, atMs),
    ];
  }

  async #begin(asked: readonly { readonly which: number; readonly nanos: number }[]): Promise<void> {
    const { members, isStrict, aheadMs } = this.#made;
    const before = this.#requests.length;
    await Promise.all(
      asked.map(async ({ which, nanos }, at) => {
        const place = which % members.length;
        const keyId = this.#keyOf(place);
        const claims = this.#claimsOf(place, this.#nowMs + (at % 2) * aheadMs);
        const least = isStrict ? nanos : 1;
        const {
          requestId,
          hold,
          budgets: _none,
          ...record
        } = { ...opened(`${keyId} ${before} ${at}`, nanos, least), keyId };
        const store = this.#stores[at % 2] ?? this.#stores[0];
        const reservation = await store.open({ ...record, requestId, hold, budgets: claims });
        const periods = reservation.periods ?? [];
        areEqual(periods.length, claims.length);
        const rooms = periods.map((period, number) => {
          const { startMs = Number.NaN, limitNanos = Number.NaN } = claims[number] ?? {};
          isAtMost(startMs, period.startMs);
          return limitNanos - period.spentNanos - period.heldNanos;
        });
        const room = Math.min(...rooms, balanceBefore(reservation));
        if (!reservation.granted) {
          areEqual([nanos > 0, room < Math.max(least, 1)], [true, true]);
          return;
        }
        const holdNanos = reservation.holdNanos ?? 0;
        areEqual(holdNanos, nanos === 0 ? 0 : Math.min(nanos, room));
        const budgets = claims.map((claim, number) => {
          const { startMs, endMs } = periods[number] ?? claim;
          return Object.assign({}, claim, { startMs, endMs, holdNanos });
        });
        const hasBalance = reservation.balanceNanos !== null;
        areEqual(hasBalance, members[place]?.balance !== null);
        const beginning = { ...record, holdNanos: hasBalance ? holdNanos : 0, budgets };
        this.#requests.push({ id: requestId, hold: holdNanos, beginning, ...fresh });
      }),
    );
  }

  async #settle(which: number, part: number): Promise<void> {
    const unsettled = this.#requests.filter(({ state }) => state !== 'settled');
    const request = unsettled[which % unsettled.length];
    if (request === undefined) return;
    request.charge = Math.floor(request.hold * part);
    const record = { ...settled(request.id, request.charge), begun: request.beginning };
    await this.#stores[which % 2 === 0 ? 0 : 1].settle(record);
    request.state = 'settled';
  }

  async #lose(which: number): Promise<void> {
    const open = this.#requests.filter(({ state }) => state === 'open');
    const request = open[which % open.length];
    if (request === undefined) return;
    // Each process may close its own requests; nothing says which began this one.
    for (const store of this.#stores) await store.closeAsLost([request.id]);
    request.state = 'lost';
    request.wasLost = true;
  }

  /** Compares each stored period with what the requests of this test add up to in it. */
  async #check(): Promise<void> {
    const owned = [...this.#groups, ...this.#keys].map((each) => ({
      id: budgetIdOf(each.ownerId, each.budget),
      budget: each.budget,
    }));
    const stored = await this.#stores[0].budgetPeriods(owned.map(({ id }) => id));
    for (const { id, budget: asked } of owned) {
      const period = stored.get(id);
      if (period === undefined) continue;
      isAtMost(this.#starts.get(id) ?? period.startMs, period.startMs);
      this.#starts.set(id, period.startMs);
      const counted = this.#requests.filter(({ beginning: { budgets = [] } }) =>
        budgets.some((one) => one.id === id && one.startMs === period.startMs),
      );
      const sum = (state: Begun['state'], of: 'hold' | 'charge'): number =>
        counted
          .filter((request) => request.state === state)
          .reduce((total, request) => total + request[of], 0);
      const { spentNanos, heldNanos } = period;
      areEqual([id, spentNanos, heldNanos], [id, sum('settled', 'charge'), sum('open', 'hold')]);
      // Nothing is charged here beyond its hold: all that can exceed the amount is what was given back and settled late.
      const late = counted.reduce((total, { wasLost, charge }) => total + (wasLost ? charge : 0), 0);
      isAtMost(spentNanos + heldNanos, asked.amountNanos + late);
    }
  }
}

/** A request that has just begun. */
const fresh = { state: 'open', wasLost: false, charge: 0 } as const;

function areEqual(found: unknown, expected: unknown): void {
  expect(found).toEqual(expected);
}

function isAtMost(found: number, most: number): void {
  expect(found).toBeLessThanOrEqual(most);
}

/** What the balance had before a request. */
function balanceBefore(reservation: Awaited<ReturnType<Store['open']>>): number {
  const { balanceNanos } = reservation;
  if (balanceNanos === null) return Number.POSITIVE_INFINITY;
  return reservation.granted ? balanceNanos + (reservation.holdNanos ?? 0) : balanceNanos;
}

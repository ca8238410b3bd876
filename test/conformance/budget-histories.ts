import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { budgetIdOf, claimOf } from '../../src/domain/budgets/budget.ts';
import type { Budget } from '../../src/domain/budgets/budget.ts';
import { budgetPeriods } from '../../src/domain/budgets/calendar.ts';
import type { RecordBeginning } from '../../src/domain/consumption.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import type { Store } from '../../src/storage/store.ts';
import { propertyRun } from '../support/property-run.ts';
import { referencePeriod, zones } from '../support/reference-calendar.ts';
import { joinStore, key, opened, settled } from './store.ts';

/** How long after the beginning of a period or before its end a request arrives, in milliseconds: often at the edge. */
const nearEdge = fc.oneof(
  fc.integer({ min: -3, max: 3 }),
  fc.integer({ min: -90 * 60_000, max: 90 * 60_000 }),
);

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('begin' as const),
      /** The holds of requests that begin at once, in turn on both processes. */
      holds: fc.array(fc.nat(40), { minLength: 1, maxLength: 5 }),
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
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('move' as const), periods: fc.nat(2), offset: nearEdge }),
  },
);

const history = fc.record({
  per: fc.constantFrom(...budgetPeriods),
  timeZone: fc.constantFrom(...zones),
  startMs: fc.integer({ min: Date.UTC(2005, 0, 1), max: Date.UTC(2035, 0, 1) }),
  amountNanos: fc.integer({ min: 1, max: 120 }),
  balance: fc.option(fc.integer({ min: 0, max: 300 })),
  isStrict: fc.boolean(),
  /** By how much the clock of the second process is ahead, in milliseconds. */
  aheadMs: fc.oneof(fc.constant(0), fc.integer({ min: -7_200_000, max: 7_200_000 })),
  steps: fc.array(step, { maxLength: 30, size: 'max' }),
});

type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** A request that was begun, as this test keeps it. */
interface Begun {
  readonly id: string;
  readonly hold: number;
  readonly beginning: RecordBeginning;
  readonly periodMs: number;
  state: 'open' | 'lost' | 'settled';
  wasLost: boolean;
  charge: number;
}

/** Requests of two processes with clocks of their own, which also end late or are lost, around the edges of periods. */
export function describeBudgetHistories(name: string, open: () => Promise<Engine>, runs: number): void {
  let engine: Engine;
  let count = 0;
  beforeAll(async () => {
    engine = await open();
  });
  afterAll(() => engine.close());

  // oxlint-disable-next-line vitest/expect-expect -- `Played` asserts.
  test(
    `${name}: no budget is exceeded or refilled twice, whatever the zone, the clocks and the order of ends`,
    { timeout: 120_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(history, (made) => new Played(engine, `key_${++count}_${name}`, made).play()),
        propertyRun(runs),
      );
    },
  );
}

class Played {
  readonly #engine: Engine;
  readonly #keyId: string;
  readonly #made: History;
  readonly #budget: Budget;
  readonly #stores: readonly [Store, Store];
  readonly #requests: Begun[] = [];
  /** The starts of the periods that were stored, in their order. */
  readonly #starts: number[] = [];
  #nowMs: number;

  constructor(engine: Engine, keyId: string, made: History) {
    const { per, timeZone, amountNanos, startMs } = made;
    this.#engine = engine;
    this.#keyId = keyId;
    this.#made = made;
    this.#budget = { amountNanos, per, timeZone, warnAt: [500, 1_000], raise: null };
    this.#stores = [joinStore(engine), joinStore(engine)];
    this.#nowMs = startMs;
  }

  async play(): Promise<void> {
    const { balance, steps } = this.#made;
    const settings = {
      id: this.#keyId,
      name: this.#keyId,
      hasBalance: balance !== null,
      budget: this.#budget,
    };
    await this.#stores[0].createKey({ ...key, ...settings }, this.#keyId, balance);
    for (const made of steps) {
      if (made.kind === 'begin') await this.#begin(made.holds);
      else if (made.kind === 'settle') await this.#settle(made.which, made.part);
      else if (made.kind === 'lose') await this.#lose(made.which);
      else this.#move(made.periods, made.offset);
      await this.#check();
    }
    const { faults } = await verifyLedger(createLedgerAudit(this.#engine));
    areEqual(
      faults.filter((fault) => fault.includes(this.#keyId)),
      [],
    );
  }

  async #begin(holds: readonly number[]): Promise<void> {
    const { isStrict, aheadMs, per, timeZone, amountNanos, balance } = this.#made;
    await Promise.all(
      holds.map(async (nanos, at) => {
        const atMs = this.#nowMs + (at % 2) * aheadMs;
        const id = `${this.#keyId} ${this.#requests.length} ${at}`;
        const claim = claimOf('key', this.#keyId, this.#budget, atMs);
        areEqual({ startMs: claim.startMs, endMs: claim.endMs }, referencePeriod(atMs, per, timeZone));
        const least = isStrict ? nanos : 1;
        const {
          requestId,
          hold,
          budgets: _none,
          ...record
        } = { ...opened(id, nanos, least), keyId: this.#keyId };
        const store = this.#stores[at % 2] ?? this.#stores[0];
        const reservation = await store.open({ ...record, requestId, hold, budgets: [claim] });
        const [period] = reservation.periods ?? [];
        if (period === undefined) throw new Error('no period');
        isAtMost(claim.startMs, period.startMs);
        const room = Math.min(amountNanos - period.spentNanos - period.heldNanos, roomOf(reservation));
        if (!reservation.granted) {
          areEqual([nanos > 0, room < Math.max(least, 1)], [true, true]);
          return;
        }
        const { holdNanos, balanceNanos } = reservation;
        areEqual(holdNanos, nanos === 0 ? 0 : Math.min(nanos, room));
        const { startMs, endMs } = period;
        const counted = { ...claim, startMs, endMs, holdNanos: holdNanos ?? 0 };
        const beginning = {
          ...record,
          holdNanos: balance === null ? 0 : (holdNanos ?? 0),
          budgets: [counted],
        };
        areEqual(balanceNanos === null, balance === null);
        this.#requests.push({
          id,
          hold: holdNanos ?? 0,
          beginning,
          periodMs: startMs,
          state: 'open',
          wasLost: false,
          charge: 0,
        });
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

  #move(periods: number, offset: number): void {
    const { per, timeZone } = this.#made;
    let edgeMs = referencePeriod(this.#nowMs, per, timeZone).endMs;
    for (let count = 1; count < periods; count++) edgeMs = referencePeriod(edgeMs, per, timeZone).endMs;
    this.#nowMs = Math.max(this.#nowMs, edgeMs + offset);
  }

  /** Compares the stored period with what the requests of this test add up to in it. */
  async #check(): Promise<void> {
    const id = budgetIdOf(this.#keyId, this.#budget);
    const period = (await this.#stores[0].budgetPeriods([id])).get(id);
    if (period === undefined) return;
    const last = this.#starts.at(-1);
    if (last !== period.startMs) this.#starts.push(period.startMs);
    if (last !== undefined) isAtMost(last, period.startMs);
    const counted = this.#requests.filter(({ periodMs }) => periodMs === period.startMs);
    const sum = (state: Begun['state'], of: 'hold' | 'charge'): number =>
      counted.filter((request) => request.state === state).reduce((total, request) => total + request[of], 0);
    const { spentNanos, heldNanos } = period;
    areEqual([spentNanos, heldNanos], [sum('settled', 'charge'), sum('open', 'hold')]);
    // Nothing is charged here beyond its hold: all that can exceed the amount is what was given back and settled late.
    const late = counted.reduce((total, { wasLost, charge }) => total + (wasLost ? charge : 0), 0);
    isAtMost(spentNanos + heldNanos, this.#made.amountNanos + late);
  }
}

function areEqual(found: unknown, expected: unknown): void {
  expect(found).toEqual(expected);
}

function isAtMost(found: number, most: number): void {
  expect(found).toBeLessThanOrEqual(most);
}

/** What the balance had before a request. */
function roomOf({ granted, balanceNanos, ...rest }: Awaited<ReturnType<Store['open']>>): number {
  if (balanceNanos === null) return Number.POSITIVE_INFINITY;
  return granted && 'holdNanos' in rest ? balanceNanos + (rest.holdNanos ?? 0) : balanceNanos;
}

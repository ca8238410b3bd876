import fc from 'fast-check';
import type { BudgetTerms } from '../../src/domain/budgets/budget.ts';
import type { RecordBeginning, Reservation } from '../../src/domain/money/consumption.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import type { Store } from '../../src/storage/store.ts';
import { expectAtMost, expectEqual } from '../support/assertions.ts';
import { joinStore, opened, settled } from './store.ts';

/** Whether a hold must be whole, or may be what there is room for. */
export const isStrict = fc.boolean();

/** By how much the clock of the second process is ahead, in milliseconds. */
export const aheadMs = fc.oneof(fc.constant(0), fc.integer({ min: -7_200_000, max: 7_200_000 }));

/** When a history begins, in milliseconds since 1970. */
export const startMs = fc.integer({ min: Date.UTC(2005, 0, 1), max: Date.UTC(2035, 0, 1) });

/** A balance; `null` for none. */
export const balance = fc.option(fc.integer({ min: 0, max: 300 }));

/** The end of one of the requests, which may have been lost before: the part of its hold that is charged. */
export const settleStep = fc.record({
  kind: fc.constant('settle' as const),
  which: fc.nat(30),
  part: fc.double({ min: 0, max: 1, noNaN: true }),
});

/** The loss of one of the requests in progress. */
export const loseStep = fc.record({ kind: fc.constant('lose' as const), which: fc.nat(30) });

/** A request that begins: for which key, on which of the two processes, and what it asks. */
interface Asked {
  /** A name of the request alone. */
  readonly name: string;
  readonly keyId: string;
  readonly hasBalance: boolean;
  readonly process: number;
  readonly wanted: readonly BudgetTerms[];
  readonly nanos: number;
  readonly isStrict: boolean;
}

/** A request that was begun. */
interface Begun {
  readonly id: string;
  readonly hold: number;
  readonly beginning: RecordBeginning;
  state: 'open' | 'lost' | 'settled';
  wasLost: boolean;
  charge: number;
}

/** Requests with budgets, on two processes over one engine. What the database says is compared with sums of their own. */
export class TrackedRequests {
  readonly store: Store;
  readonly #engine: Engine;
  readonly #stores: readonly [Store, Store];
  readonly #begun: Begun[] = [];
  /** The last start of the stored period of each budget. */
  readonly #starts = new Map<string, number>();

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#stores = [joinStore(engine), joinStore(engine)];
    [this.store] = this.#stores;
  }

  /** How many requests were begun. */
  get count(): number {
    return this.#begun.length;
  }

  /** Begins a request: it holds as much as the balance and every budget have room for, or is refused. */
  async begin({ name, keyId, hasBalance, process, wanted, nanos, isStrict: whole }: Asked): Promise<void> {
    const least = whole ? nanos : 1;
    const { budgets: _none, ...given } = { ...opened(name, nanos, least), keyId };
    const { requestId, hold: _hold, ...record } = given;
    const store = this.#stores[process % 2] ?? this.store;
    const reservation = await store.open({ ...given, budgets: wanted });
    const periods = reservation.periods ?? [];
    expectEqual(periods.length, wanted.length);
    const rooms = periods.map((period, at) => {
      const { startMs: wantedMs = Number.NaN, limitNanos = Number.NaN } = wanted[at] ?? {};
      expectAtMost(wantedMs, period.startMs);
      return limitNanos - period.spentNanos - period.heldNanos;
    });
    const room = Math.min(...rooms, balanceBefore(reservation));
    if (!reservation.granted) {
      expectEqual([nanos > 0, room < Math.max(least, 1)], [true, true]);
      return;
    }
    const hold = reservation.holdNanos ?? 0;
    expectEqual(hold, nanos === 0 ? 0 : Math.min(nanos, room));
    expectEqual(reservation.balanceNanos !== null, hasBalance);
    const budgets = wanted.map((terms, at) => {
      const { startMs: start, endMs: end } = periods[at] ?? terms;
      return { ...terms, startMs: start, endMs: end, holdNanos: hold };
    });
    const beginning = { ...record, holdNanos: hasBalance ? hold : 0, budgets };
    this.#begun.push({ id: requestId, hold, beginning, state: 'open', wasLost: false, charge: 0 });
  }

  async settle(which: number, part: number): Promise<void> {
    const unsettled = this.#begun.filter(({ state }) => state !== 'settled');
    const request = unsettled[which % unsettled.length];
    if (request === undefined) return;
    request.charge = Math.floor(request.hold * part);
    const end = { ...settled('', request.charge), requestId: request.id, begun: request.beginning };
    await this.#stores[which % 2 === 0 ? 0 : 1].settle(end);
    request.state = 'settled';
  }

  async lose(which: number): Promise<void> {
    const open = this.#begun.filter(({ state }) => state === 'open');
    const request = open[which % open.length];
    if (request === undefined) return;
    // Each process may close its own requests; nothing says which began this one.
    for (const store of this.#stores) await store.closeAsLost([request.id]);
    request.state = 'lost';
    request.wasLost = true;
  }

  /** Compares the stored period of each budget with what the requests add up to in it. */
  async check(budgets: readonly { readonly id: string; readonly amountNanos: number }[]): Promise<void> {
    const stored = await this.store.budgetPeriods(budgets.map(({ id }) => id));
    for (const { id, amountNanos } of budgets) {
      const period = stored.get(id);
      if (period === undefined) continue;
      expectAtMost(this.#starts.get(id) ?? period.startMs, period.startMs);
      this.#starts.set(id, period.startMs);
      const counted = this.#begun.filter(({ beginning }) =>
        beginning.budgets?.some((one) => one.id === id && one.startMs === period.startMs),
      );
      const sum = (state: Begun['state'], of: 'hold' | 'charge'): number =>
        counted.filter((one) => one.state === state).reduce((total, one) => total + one[of], 0);
      const { spentNanos, heldNanos } = period;
      expectEqual([id, spentNanos, heldNanos], [id, sum('settled', 'charge'), sum('open', 'hold')]);
      // Nothing is charged here beyond its hold: all that can exceed the amount is what was given back and settled late.
      const late = counted.reduce((total, { wasLost, charge }) => total + (wasLost ? charge : 0), 0);
      expectAtMost(spentNanos + heldNanos, amountNanos + late);
    }
  }

  /** What an audit finds wrong, in the lines that have one of some texts. */
  async faultsOf(...texts: readonly string[]): Promise<readonly string[]> {
    const { faults } = await verifyLedger(createLedgerAudit(this.#engine));
    return faults.filter((fault) => texts.some((text) => fault.includes(text)));
  }
}

/** What the balance had before a request. */
function balanceBefore(reservation: Reservation): number {
  const { balanceNanos } = reservation;
  if (balanceNanos === null) return Number.POSITIVE_INFINITY;
  return reservation.granted ? balanceNanos + (reservation.holdNanos ?? 0) : balanceNanos;
}

import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { budgetIdOf, termsOf } from '../../src/domain/budgets/budget.ts';
import type { Budget } from '../../src/domain/budgets/budget.ts';
import { budgetPeriods } from '../../src/domain/budgets/calendar.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { expectEqual } from '../support/assertions.ts';
import { propertyRun } from '../support/property-run.ts';
import { referencePeriod, zones } from '../support/reference-calendar.ts';
import { key } from './store.ts';
import {
  TrackedRequests,
  aheadMs,
  balance,
  isStrict,
  loseStep,
  settleStep,
  startMs,
} from './tracked-requests.ts';

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
  { weight: 5, arbitrary: settleStep },
  { weight: 1, arbitrary: loseStep },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('move' as const), periods: fc.nat(2), offset: nearEdge }),
  },
);

const history = fc.record({
  per: fc.constantFrom(...budgetPeriods),
  timeZone: fc.constantFrom(...zones),
  startMs,
  amountNanos: fc.integer({ min: 1, max: 120 }),
  balance,
  isStrict,
  aheadMs,
  steps: fc.array(step, { maxLength: 30, size: 'max' }),
});

type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** Requests of two processes with clocks of their own, which also end late or are lost, around the edges of periods. */
export function describeBudgetHistories(name: string, open: () => Promise<Engine>, runs: number): void {
  let engine: Engine;
  let count = 0;
  beforeAll(async () => {
    engine = await open();
  });
  afterAll(() => engine.close());

  test(
    `${name}: no budget is exceeded or refilled twice, whatever the zone, the clocks and the order of ends`,
    { timeout: 120_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(history, async (made) => {
          const faults = await new PlayedHistory(engine, `key_${++count}_${name}`, made).play();
          expect(faults).toEqual([]);
        }),
        propertyRun(runs),
      );
    },
  );
}

class PlayedHistory {
  readonly #keyId: string;
  readonly #made: History;
  readonly #budget: Budget;
  readonly #requests: TrackedRequests;
  #nowMs: number;

  constructor(engine: Engine, keyId: string, made: History) {
    const { per, timeZone, amountNanos } = made;
    this.#keyId = keyId;
    this.#made = made;
    this.#budget = { amountNanos, per, timeZone, warnAt: [500, 1_000], raise: null };
    this.#requests = new TrackedRequests(engine);
    this.#nowMs = made.startMs;
  }

  /** Plays the history; resolves with what an audit finds wrong at its end. */
  async play(): Promise<readonly string[]> {
    const requests = this.#requests;
    const id = this.#keyId;
    const settings = { id, name: id, hasBalance: this.#made.balance !== null, budget: this.#budget };
    await requests.store.createKey({ ...key, ...settings }, id, this.#made.balance);
    for (const made of this.#made.steps) {
      if (made.kind === 'begin') await this.#begin(made.holds);
      else if (made.kind === 'settle') await requests.settle(made.which, made.part);
      else if (made.kind === 'lose') await requests.lose(made.which);
      else this.#move(made.periods, made.offset);
      await requests.check([{ ...this.#budget, id: budgetIdOf(id, this.#budget) }]);
    }
    return requests.faultsOf(id);
  }

  async #begin(holds: readonly number[]): Promise<void> {
    const { per, timeZone } = this.#made;
    await Promise.all(
      holds.map(async (nanos, process) => {
        const atMs = this.#nowMs + (process % 2) * this.#made.aheadMs;
        const terms = termsOf('key', this.#keyId, this.#budget, atMs);
        expectEqual({ startMs: terms.startMs, endMs: terms.endMs }, referencePeriod(atMs, per, timeZone));
        await this.#requests.begin({
          name: `${this.#keyId} ${this.#requests.count} ${process}`,
          keyId: this.#keyId,
          hasBalance: this.#made.balance !== null,
          process,
          wanted: [terms],
          nanos,
          isStrict: this.#made.isStrict,
        });
      }),
    );
  }

  #move(periods: number, offset: number): void {
    const { per, timeZone } = this.#made;
    let edgeMs = referencePeriod(this.#nowMs, per, timeZone).endMs;
    for (let count = 1; count < periods; count++) edgeMs = referencePeriod(edgeMs, per, timeZone).endMs;
    this.#nowMs = Math.max(this.#nowMs, edgeMs + offset);
  }
}

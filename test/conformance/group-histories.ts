import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { budgetIdOf, termsOf } from '../../src/domain/budgets/budget.ts';
import type { Budget, BudgetTerms } from '../../src/domain/budgets/budget.ts';
import { budgetPeriods } from '../../src/domain/budgets/calendar.ts';
import { groupIdOf } from '../../src/domain/limits/groups.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { propertyRun } from '../support/property-run.ts';
import { zones } from '../support/reference-calendar.ts';
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

const budget = fc.record({
  amountNanos: fc.integer({ min: 1, max: 150 }),
  per: fc.constantFrom(...budgetPeriods),
  timeZone: fc.constantFrom(...zones),
});

/** A key: its own budget and its balance, or `null` for none; and of which group it is first. */
const member = fc.record({
  own: fc.option(budget),
  balance,
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
  { weight: 5, arbitrary: settleStep },
  { weight: 1, arbitrary: loseStep },
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
  startMs,
  isStrict,
  aheadMs,
  steps: fc.array(step, { maxLength: 30, size: 'max' }),
});

type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** A budget as it is asked for, by the id of its owner. */
interface Owned {
  readonly ownerId: string;
  readonly budget: Budget;
}

/** Requests of several keys in two groups, on two processes with clocks of their own, which also end late or are lost. */
export function describeGroupHistories(name: string, open: () => Promise<Engine>, runs: number): void {
  let engine: Engine;
  let count = 0;
  beforeAll(async () => {
    engine = await open();
  });
  afterAll(() => engine.close());

  test(
    `${name}: no budget of a group or of its keys is exceeded or refilled twice, whatever the calendars and the order of ends`,
    { timeout: 120_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(history, async (made) => {
          const faults = await new PlayedHistory(engine, `${name}_${++count}`, made).play();
          expect(faults).toEqual([]);
        }),
        propertyRun(runs),
      );
    },
  );
}

class PlayedHistory {
  readonly #made: History;
  readonly #name: string;
  readonly #groups: readonly [Owned, Owned];
  readonly #keys: readonly Owned[];
  /** Of which group each key is now: 0 or 1. */
  readonly #groupOf: number[];
  readonly #requests: TrackedRequests;
  #nowMs: number;

  constructor(engine: Engine, name: string, made: History) {
    const whole = (given: History['groups'][0]): Budget => ({ ...given, warnAt: [500, 1_000], raise: null });
    const [first, second] = made.groups;
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
    this.#requests = new TrackedRequests(engine);
    this.#nowMs = made.startMs;
  }

  #keyOf(at: number): string {
    return `member_${this.#name}_${at}`;
  }

  /** Plays the history; resolves with what an audit finds wrong at its end. */
  async play(): Promise<readonly string[]> {
    const requests = this.#requests;
    for (const [at, { balance: nanos }] of this.#made.members.entries()) {
      const id = this.#keyOf(at);
      await requests.store.createKey({ ...key, id, name: id, hasBalance: nanos !== null }, id, nanos);
    }
    const budgets = [...this.#groups, ...this.#keys].map(
      ({ ownerId, budget: { amountNanos, ...calendar } }) => ({
        id: budgetIdOf(ownerId, calendar),
        amountNanos,
      }),
    );
    for (const made of this.#made.steps) {
      if (made.kind === 'begin') await this.#begin(made.asked);
      else if (made.kind === 'settle') await requests.settle(made.which, made.part);
      else if (made.kind === 'lose') await requests.lose(made.which);
      else if (made.kind === 'move') this.#nowMs += made.byMs;
      else this.#groupOf[made.which] = 1 - (this.#groupOf[made.which] ?? 0);
      await requests.check(budgets);
    }
    return requests.faultsOf(`${this.#name}-`, `member_${this.#name}_`);
  }

  /** What a key asks of its own budget and of that of its group, in this order. */
  #allTermsOf(at: number, atMs: number): readonly BudgetTerms[] {
    const own = this.#keys.find(({ ownerId }) => ownerId === this.#keyOf(at));
    const group = this.#groups[this.#groupOf[at] === 1 ? 1 : 0];
    return [
      ...(own === undefined ? [] : [termsOf('key', own.ownerId, own.budget, atMs)]),
      termsOf('group', group.ownerId, group.budget, atMs),
    ];
  }

  async #begin(asked: readonly { readonly which: number; readonly nanos: number }[]): Promise<void> {
    const { members } = this.#made;
    const before = this.#requests.count;
    await Promise.all(
      asked.map(({ which, nanos }, process) => {
        const place = which % members.length;
        const keyId = this.#keyOf(place);
        return this.#requests.begin({
          name: `${keyId} ${before} ${process}`,
          keyId,
          hasBalance: members[place]?.balance !== null,
          process,
          wanted: this.#allTermsOf(place, this.#nowMs + (process % 2) * this.#made.aheadMs),
          nanos,
          isStrict: this.#made.isStrict,
        });
      }),
    );
  }
}

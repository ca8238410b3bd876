import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BudgetTerms, BudgetOwner, CountedBudget } from '../../src/domain/budgets/budget.ts';
import type { PeriodBounds } from '../../src/domain/budgets/calendar.ts';
import { groupIdOf } from '../../src/domain/limits/groups.ts';
import type { Store } from '../../src/storage/store.ts';
import { joinStore, key, opened, settled, startMs } from '../conformance/store.ts';
import type { TimedDatabase } from '../support/timed-sqlite.ts';
import { propertyRun } from '../support/property-run.ts';
import { MemoryBooks } from './database/memory-books.ts';
import { MemoryLeases } from './database/memory-leases.ts';

/** A step of one of three processes, or of the time of the database. */
type Step =
  | {
      readonly kind: 'begin';
      readonly by: number;
      readonly request: number;
      readonly hold: number;
      readonly least: number;
      /** The periods that its process is in, of the budgets of its key and its group; `null` without one. */
      readonly period: number | null;
      readonly groupPeriod: number | null;
    }
  | { readonly kind: 'settle'; readonly by: number; readonly request: number; readonly charge: number }
  | { readonly kind: 'renew' | 'end over' | 'end own' | 'close lost' | 'sweep'; readonly by: number }
  | { readonly kind: 'credit'; readonly nanos: number }
  | { readonly kind: 'pass'; readonly durationMs: number };

const by = fc.nat(2);
const request = fc.nat(7);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('begin'),
      by,
      request,
      hold: fc.nat(30),
      least: fc.integer({ min: 1, max: 30 }),
      period: fc.option(fc.nat(3)),
      groupPeriod: fc.option(fc.nat(3)),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('settle'), by, request, charge: fc.nat(40) }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom('renew', 'renew', 'end over', 'end own', 'close lost', 'sweep'),
      by,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('credit'), nanos: fc.integer({ min: 1, max: 50 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('pass'),
      durationMs: fc.constantFrom(1, 5_000, 9_999, 14_999, 15_000),
    }),
  },
);

/** Leases and books in plain lists, which the simulation is made on, do what the statements do. */
export function describeBooks(name: string, open: () => Promise<TimedDatabase>): void {
  describe(`${name}: leases and money`, () => {
    let database: TimedDatabase;
    let runs = 0;
    beforeAll(async () => {
      database = await open();
    });
    afterAll(() => database.engine.close());

    test('are what the lists in memory are, for any steps of three processes', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
          const { found, expected } = await compareSteps(database, `run-${++runs}`, steps);
          expect(found).toEqual(expected);
        }),
        propertyRun(150),
      );
    });
  });
}

/** Takes some steps on the database and on the lists in memory; returns what each of them answered. */
async function compareSteps({ engine, move }: TimedDatabase, prefix: string, steps: readonly Step[]) {
  await engine.run(['owners', 'open_rows'].map((table) => ({ sql: `DELETE FROM ${table}`, values: [] })));
  const stores: readonly Store[] = [0, 1, 2].map(() => joinStore(engine));
  const keyId = `key of ${prefix}`;
  await stores[0]?.createKey({ ...key, id: keyId, name: keyId }, keyId, 100);
  let nowMs = startMs;
  const leases = new MemoryLeases(() => nowMs);
  const books = new MemoryBooks((owner) => leases.has(owner));
  books.credit(keyId, 100);
  const hasHeld = new Set<Store>();
  const begun = new Set<string>();
  const counted = new Map<string, readonly CountedBudget[]>();
  const found: unknown[] = [];
  const expected: unknown[] = [];
  for (const action of steps) {
    const store = stores[action.kind === 'credit' || action.kind === 'pass' ? 0 : action.by];
    if (store === undefined) throw new Error('there are three processes');
    const owner = store.owner();
    switch (action.kind) {
      case 'begin': {
        const name = `${prefix} ${action.request}`;
        // A request is begun once.
        if (begun.has(name)) break;
        begun.add(name);
        const plain = { ...opened(name, action.hold, action.least), keyId };
        const budgets = allTermsOf(keyId, action);
        const record = budgets.length === 0 ? plain : { ...plain, budgets };
        const reservation = await store.open(record);
        found.push(reservation);
        expected.push(books.begin(owner, record));
        const of = (terms: BudgetTerms, at: number): CountedBudget => ({
          ...terms,
          ...boundsOf(reservation.periods?.[at] ?? terms),
          holdNanos: 0,
        });
        if (budgets.length > 0) counted.set(name, budgets.map(of));
        break;
      }
      case 'settle': {
        const name = `${prefix} ${action.request}`;
        const record = settled(name, action.charge);
        const ended = {
          ...record,
          begun: { ...record.begun, keyId, ...budgetsOf(counted.get(name)) },
        };
        found.push(await failureOf(async () => void (await store.settle(ended))));
        expected.push(await failureOf(async () => books.settle(ended)));
        break;
      }
      case 'renew': {
        found.push(await store.renewLease());
        expected.push(leases.renew(owner, store.owner()) && hasHeld.has(store));
        hasHeld.add(store);
        break;
      }
      case 'end over': {
        const over = leases.over(owner);
        found.push((await store.endOverLeases()).toSorted());
        expected.push(over.toSorted());
        for (const id of over) leases.end(id);
        break;
      }
      case 'end own':
        await store.endLease();
        leases.end(owner);
        break;
      case 'close lost':
        found.push(await store.closeLostRecords());
        expected.push(books.closeLost().length);
        break;
      case 'sweep': {
        const times = [startMs + action.by, startMs + 10_000] as const;
        const closable = (await store.listClosable(...times)).toSorted();
        found.push(closable, await store.closeAsLost(closable));
        expected.push(books.closable(owner, ...times).toSorted(), books.closeSome(owner, closable).length);
        break;
      }
      case 'credit':
        await store.credit({ keyId, nanos: action.nanos, reference: `credit ${found.length}` });
        books.credit(keyId, action.nanos);
        break;
      case 'pass':
        await move(action.durationMs);
        nowMs += action.durationMs;
        break;
    }
    const account = (await store.accounts([keyId])).get(keyId);
    found.push({ ...account });
    const { balance, held, spent } = books.account(keyId);
    expected.push({ balanceNanos: balance, heldNanos: held, spentNanos: spent });
    for (const { id } of allTermsOf(keyId, { period: 0, groupPeriod: 0 })) {
      found.push((await store.budgetPeriods([id])).get(id));
      expected.push(books.budgets.get(id) && { ...books.budgets.get(id) });
    }
  }
  return { found, expected };
}

/** What a request asks of the budgets of its key and its group, each in a period; `null` for none. */
function allTermsOf(
  keyId: string,
  { period, groupPeriod }: Readonly<Record<'period' | 'groupPeriod', number | null>>,
): readonly BudgetTerms[] {
  const levels = [20, 50].map((nanos) => ({ nanos, part: nanos * 10 }));
  const terms = (owner: BudgetOwner, id: string, of: number | null, limitNanos: number): BudgetTerms[] =>
    of === null
      ? []
      : [{ id: `${id} budget`, owner, startMs: of * 1_000, endMs: (of + 1) * 1_000, limitNanos, levels }];
  return [
    ...terms('key', keyId, period, 60),
    ...terms('group', groupIdOf(keyId.replaceAll(' ', '-')), groupPeriod, 80),
  ];
}

function boundsOf(period: PeriodBounds): PeriodBounds {
  return { startMs: period.startMs, endMs: period.endMs };
}

function budgetsOf(budgets: readonly CountedBudget[] | undefined): {
  readonly budgets?: readonly CountedBudget[];
} {
  return budgets === undefined ? {} : { budgets };
}

async function failureOf(act: () => Promise<void>): Promise<string | null> {
  return act().then(
    () => null,
    (error: unknown) => String(error),
  );
}

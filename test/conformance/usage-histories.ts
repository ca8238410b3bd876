import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OpenedRecord, Outcome } from '../../src/domain/money/consumption.ts';
import { usageDimensions, usagePeriods } from '../../src/domain/ports/usage.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createRetention } from '../../src/storage/retention.ts';
import { createStore } from '../../src/storage/store.ts';
import { createUsageRollups } from '../../src/storage/usage/usage-rollups.ts';
import { createUsage } from '../../src/storage/usage/usage-store.ts';
import { propertyRun } from '../support/property-run.ts';
import { beginningOf } from '../support/stored-rows.ts';
import { say } from './engine.ts';
import { idOf, key, opened, settled } from './store.ts';
import { readUsage, sumRecords } from '../support/usage-sums.ts';
import type { AskedUsage, KeptRecords } from '../support/usage-sums.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

const models = ['m', 'M', 'ä'];
const upstreams = ['u', 'v'];
const outcomes: readonly Outcome[] = ['completed', 'incomplete'];
const tags = [null, 'search', 'summary'];
const groups = [null, 'research', 'Sales'];
const accounts = 4;

/** A step of a history, whose time only passes. */
type Step =
  | {
      readonly kind: 'use';
      readonly account: number;
      readonly model: number;
      readonly tag: number;
      /** The group that the key is in by then. */
      readonly group: number;
      /** How many hours ago it was begun. */
      readonly age: number;
      readonly end: { readonly charge: number; readonly upstream: number; readonly outcome: number } | null;
    }
  /** The next two are of one of the last requests, whatever became of it. */
  | { readonly kind: 'settle'; readonly request: number; readonly charge: number; readonly upstream: number }
  | { readonly kind: 'lose'; readonly request: number }
  | { readonly kind: 'pass'; readonly hours: number }
  | { readonly kind: 'remove'; readonly most: number; readonly folds: boolean }
  /** A run of the rollups, which ends after some pauses at the latest. */
  | { readonly kind: 'roll'; readonly pauses: number };

const charge = fc.nat(50);
const upstream = fc.nat(upstreams.length - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('use'),
      account: fc.nat(accounts - 1),
      model: fc.nat(models.length - 1),
      tag: fc.nat(tags.length - 1),
      group: fc.nat(groups.length - 1),
      age: fc.oneof(fc.constant(0), fc.nat(60), fc.nat(1_500)),
      end: fc.option(fc.record({ charge, upstream, outcome: fc.nat(outcomes.length - 1) }), { freq: 1 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('settle'), request: fc.nat(3), charge, upstream }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('lose'), request: fc.nat(3) }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('pass'), hours: fc.oneof(fc.nat(30), fc.nat(800)) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('remove'),
      most: fc.integer({ min: 1, max: 9 }),
      folds: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('roll'), pauses: fc.oneof(fc.nat(12), fc.constant(10_000)) }),
  },
);

const maybe = <Value>(values: readonly Value[]): fc.Arbitrary<Value | undefined> =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom(...values) },
  );

/** A query, in hours after the beginning of a history, and the number of rows of its pages. */
const question = fc.record({
  period: fc.option(fc.constantFrom(...usagePeriods)),
  dimensions: fc.subarray([...usageDimensions]),
  from: fc.oneof(fc.constant(0), fc.nat(3_000)),
  hours: fc.oneof(fc.constant(10_000), fc.nat(2_000)),
  account: maybe(Array.from({ length: accounts }, (_, at) => at)),
  model: maybe(models),
  upstream: maybe(upstreams),
  outcome: maybe<Outcome>(['completed', 'lost']),
  tag: maybe(tags),
  group: maybe(groups),
  limit: fc.constantFrom(1, 2, 5, 1_000),
  rowsPerSlice: fc.constantFrom(1, 4, 10_000),
});

/** How long a history may be: the next one begins behind it, as sums are of all keys. */
const historyMs = 12 * 366 * dayMs;

interface History {
  readonly run: number;
  readonly name: string;
  readonly startMs: number;
}

/** Takes the steps; returns all records that ever were, each as it was last. */
async function takeSteps(
  engine: Engine,
  { run, name, startMs }: History,
  steps: readonly Step[],
): Promise<KeptRecords> {
  let nowMs = startMs + 1_600 * hourMs;
  let lastId = 0;
  let lastRequest = 0;
  const nextId = (): string => `${name} ${run} id ${++lastId}`;
  const store = createStore(engine, { nextId, now: () => nowMs, report: () => {} });
  const keyIds = Array.from({ length: accounts }, (_, at) => keyIdOf(name, run, at));
  for (const id of keyIds) await store.createKey({ ...key, id, name: id }, id, 1_000);
  const retention = createRetention(engine);
  const requests: OpenedRecord[] = [];
  const kept: KeptRecords = new Map();
  for (const action of steps) {
    await take(action);
    const [rows = []] = await engine.read([
      say('SELECT * FROM records WHERE key_id LIKE ?', `${name} ${run} key %`),
    ]);
    for (const row of rows) kept.set(String(row['request_id']), row);
  }
  return kept;

  async function take(action: Step): Promise<unknown> {
    switch (action.kind) {
      case 'use': {
        const request: OpenedRecord = {
          ...opened('', 40),
          requestId: idOf(`${name} ${run} ${lastRequest++}`, nowMs - action.age * hourMs),
          keyId: keyIds[action.account] ?? '',
          model: models[action.model] ?? '',
          tag: tags[action.tag] ?? null,
          group: groups[action.group] ?? null,
        };
        requests.push(request);
        await store.open(request);
        if (action.end !== null)
          await settle(request, action.end.charge, action.end.upstream, outcomes[action.end.outcome]);
        return;
      }
      case 'settle': {
        const request = requests.at(-1 - action.request);
        return request && settle(request, action.charge, action.upstream);
      }
      case 'lose': {
        const request = requests.at(-1 - action.request);
        return request && store.closeAsLost([request.requestId]);
      }
      case 'pass':
        return void (nowMs += action.hours * hourMs);
      case 'remove': {
        const beforeMs = nowMs - 24 * hourMs;
        const old = await retention.listOldest(beforeMs, null, action.most);
        const some = old.map(({ requestId, outcome }) => ({ requestId, isLost: outcome === 'lost' }));
        await retention.removeRecords(some, beforeMs);
        return action.folds && retention.foldLedgers(setImmediate);
      }
      case 'roll': {
        let pauses = 0;
        const pause = (): Promise<void> => {
          if (pauses++ >= action.pauses) throw new Error('the run ends');
          return Promise.resolve();
        };
        // A process that was taken for dead may go on beside its successor.
        const rollUp = (): Promise<unknown> =>
          createUsageRollups(engine, 2)
            .rollUp(nowMs, async () => pause())
            .catch((error: unknown) => expect(String(error)).toContain('the run ends'));
        await Promise.all([rollUp(), rollUp()]);
      }
    }
  }

  /** A second settlement, and one whose record may have been removed, is refused. */
  async function settle(
    request: OpenedRecord,
    chargeNanos: number,
    at: number,
    outcome: Outcome = 'completed',
  ): Promise<void> {
    const { requestId } = request;
    const end = { ...settled('', chargeNanos), requestId, outcome, upstream: upstreams[at] ?? null };
    await store.settle({ ...end, begun: beginningOf(request) }).catch((error: unknown) => {
      expect(String(error)).toContain('no open record');
    });
  }
}

const keyIdOf = (name: string, run: number, account: number): string => `${name} ${run} key ${account}`;

/** Random histories of records, and usage of them as it may be asked for. */
export function describeUsageHistories(name: string, open: () => Promise<Engine>, runs: number): void {
  describe(`usage on ${name}`, () => {
    let engine: Engine;
    beforeAll(async () => {
      engine = await open();
    });
    afterAll(() => engine?.close());

    test('is the sum of all records that ever were, however it is asked for and whatever is rolled up', async () => {
      let run = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.array(step, { maxLength: 50, size: 'max' }),
          fc.array(question, { minLength: 8, maxLength: 12 }),
          async (steps, questions) => {
            run++;
            const history: History = { run, name, startMs: Date.UTC(2030, 0) + run * historyMs };
            const kept = await takeSteps(engine, history, steps);
            for (const asked of questions) await compare(engine, history, kept, asked);
            expect((await verifyLedger(createLedgerAudit(engine))).faults).toEqual([]);
          },
        ),
        propertyRun(runs),
      );
      expect(run).toBeGreaterThanOrEqual(runs);
    }, 120_000);
  });
}

type Question = typeof question extends fc.Arbitrary<infer Asked> ? Asked : never;

/** Asks for usage in pages, and adds it up from the records. */
async function compare(
  engine: Engine,
  { run, name, startMs }: History,
  kept: KeptRecords,
  asked: Question,
): Promise<void> {
  const { period, dimensions, from, hours, account, limit, rowsPerSlice, ...filters } = asked;
  const fromMs = startMs + from * hourMs;
  const query: AskedUsage = {
    by: [...dimensions.toReversed(), ...(period === null ? [] : [period])],
    fromMs,
    toMs: fromMs + hours * hourMs,
    where: { ...filters, keyId: account === undefined ? undefined : keyIdOf(name, run, account) },
  };
  const usage = createUsage(engine, { rowsPerSlice, leastKeys: 2 });
  expect(await readUsage(usage, query, limit)).toEqual(sumRecords(kept, query));
}

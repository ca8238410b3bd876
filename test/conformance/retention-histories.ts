import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createRetention } from '../../src/storage/retention.ts';
import { createStore } from '../../src/storage/store.ts';
import { propertyRun } from '../support/property-run.ts';
import { beginningOf } from '../support/stored-rows.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { dayMs } from './retention.ts';
import { idOf, key, opened, settled, startMs } from './store.ts';

/** A step of a history. Days pass; a request has the day on which it was begun for ever. */
type Step =
  | { readonly kind: 'use'; readonly account: number; readonly charge: number; readonly settles: boolean }
  | { readonly kind: 'settle' | 'lose'; readonly request: number; readonly charge: number }
  | { readonly kind: 'credit'; readonly account: number; readonly reference: number; readonly nanos: number }
  | { readonly kind: 'pass' }
  | { readonly kind: 'remove'; readonly most: number; readonly folds: boolean };

const account = fc.nat(2);
const charge = fc.nat(50);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('use'), account, charge, settles: fc.boolean() }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom('settle', 'lose'), request: fc.nat(30), charge }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('credit'),
      account,
      reference: fc.nat(3),
      nanos: fc.constantFrom(7, 9),
    }),
  },
  { weight: 4, arbitrary: fc.constant({ kind: 'pass' }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('remove'),
      most: fc.integer({ min: 1, max: 6 }),
      folds: fc.boolean(),
    }),
  },
);

/** A day of a run: no two runs have the same, since what was removed before a time stays removed. */
let lastDay = 0;

async function takeSteps(engine: Engine, plain: Engine, run: string, steps: readonly Step[]): Promise<void> {
  const [tested, twin] = [engine, plain].map((each) => {
    let lastId = 0;
    return createStore(each, {
      nextId: () => `${run} id ${++lastId}`,
      now: () => startMs + lastDay * dayMs,
      report: () => {},
    });
  }) as [ReturnType<typeof createStore>, ReturnType<typeof createStore>];
  const retention = createRetention(engine);
  const keyIds = [null, 0, 500].map((_, number) => `${run} key ${number}`);
  for (const [number, balance] of [null, 0, 500].entries()) {
    const id = keyIds[number] ?? '';
    for (const store of [tested, twin])
      await store.createKey({ ...key, id, name: id, hasBalance: balance !== null }, id, balance);
  }
  const requests: { readonly day: number; readonly record: ReturnType<typeof opened> }[] = [];
  let removedBefore = 0;
  lastDay++;
  const both = async (act: (store: typeof tested) => Promise<unknown>): Promise<void> => {
    const [found, expected] = await Promise.all([tested, twin].map((store) => act(store).catch(String)));
    expect(found).toEqual(expected);
  };
  for (const action of steps)
    switch (action.kind) {
      case 'use': {
        const requestId = idOf(`${run} ${requests.length}`, startMs + lastDay * dayMs);
        const record = {
          ...opened('', 40),
          requestId,
          keyId: keyIds[action.account] ?? '',
        };
        requests.push({ day: lastDay, record });
        await both((store) => store.open(record));
        if (action.settles)
          await both((store) =>
            store.settle({ ...settled('', action.charge), requestId, begun: beginningOf(record) }),
          );
        break;
      }
      case 'settle':
      case 'lose': {
        const request = requests[action.request];
        // By design, a settlement from before a removal that was never made is not made any more.
        if (request === undefined || request.day < removedBefore) break;
        const { record } = request;
        if (action.kind === 'lose') await both((store) => store.closeAsLost([record.requestId]));
        else
          await both((store) =>
            store.settle({
              ...settled('', action.charge),
              requestId: record.requestId,
              begun: beginningOf(record),
            }),
          );
        break;
      }
      case 'credit': {
        const { nanos, reference } = action;
        const keyId = keyIds[action.account] ?? '';
        await both((store) => store.credit({ keyId, nanos, reference: `reference ${reference}` }));
        break;
      }
      case 'pass':
        lastDay++;
        break;
      case 'remove': {
        const beforeMs = startMs + lastDay * dayMs;
        const read = await retention.listOldest(beforeMs, null, action.most);
        if (read.length > 0) removedBefore = lastDay;
        const some = read.map(({ requestId, outcome }) => ({ requestId, isLost: outcome === 'lost' }));
        await retention.removeRecords(some, beforeMs);
        if (action.folds) await retention.foldLedgers(setImmediate);
      }
    }
  expect(await tested.accounts(keyIds)).toEqual(await twin.accounts(keyIds));
  expect((await verifyLedger(createLedgerAudit(engine))).faults).toEqual([]);
}

/** Random histories whose old records are removed meanwhile, beside the same ones that keep them. */
export function describeRetentionHistories(name: string, open: () => Promise<Engine>, runs: number): void {
  describe(`the end of old records on ${name}`, () => {
    let engine: Engine;
    const plain = openTestEngine(':memory:');
    beforeAll(async () => {
      engine = await open();
      await plain.ready;
    });
    afterAll(() => Promise.all([engine, plain].map((each) => each?.close())));

    test('leaves balances and answers as they are without it, whatever happens', async () => {
      let run = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), (steps) =>
          takeSteps(engine, plain, `${name} ${++run}`, steps),
        ),
        propertyRun(runs),
      );
      expect(run).toBeGreaterThanOrEqual(runs);
    }, 120_000);
  });
}

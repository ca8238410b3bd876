import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import type { RecordFilter } from '../../src/domain/money/consumption.ts';
import { createRecordPages } from '../../src/storage/records/record-pages.ts';
import { createStore } from '../../src/storage/store.ts';
import { propertyRun } from '../support/property-run.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { openTestEngine } from '../support/test-engine.ts';

const startMs = 1_800_000_000_000;
const hourMs = 3_600_000;

/** A request: its model, how long after the one before it arrived, and whether it has ended. */
interface Use {
  readonly model: 'rare' | 'usual';
  readonly hours: number;
  readonly ends: boolean;
  readonly keyId: string;
}

const uses = fc.array(
  fc.record<Use>({
    model: fc.constantFrom('usual', 'usual', 'usual', 'rare'),
    hours: fc.constantFrom(0, 0, 1, 30, 24 * 40),
    ends: fc.constantFrom(true, true, true, false),
    keyId: fc.constantFrom('key_a', 'key_b'),
  }),
  { maxLength: 60, size: 'max' },
);

/** A database with some requests, in their order, and how often it is read. */
async function open(made: readonly Use[]) {
  const engine = openTestEngine(':memory:');
  const store = createStore(engine, { nextId: () => 'id', now: () => startMs, report: () => {} });
  for (const id of ['key_a', 'key_b']) await store.createKey({ ...payingKey, id, name: id }, id, null);
  let atMs = startMs;
  const ids: string[] = [];
  for (const [at, { model, hours, ends, keyId }] of made.entries()) {
    atMs += hours * hourMs;
    const begun = {
      ...openedRecord,
      requestId: requestIdFor(String(at).padStart(4, '0'), atMs),
      keyId,
      model,
    };
    ids.push(begun.requestId);
    await store.open(begun);
    if (ends) await store.settle({ ...settledRecord, requestId: begun.requestId, begun: beginningOf(begun) });
  }
  const counted = { reads: 0 };
  const counting = {
    ...engine,
    read: (...args: Parameters<typeof engine.read>) => (counted.reads++, engine.read(...args)),
  };
  return { engine: counting, counted, ids };
}

/** All pages of a list, and how many there were. */
async function pagesOf(pages: ReturnType<typeof createRecordPages>, filter: RecordFilter, limit: number) {
  const found: string[] = [];
  let before: string | null = null;
  let count = 0;
  do {
    const page = await pages.listRecords(filter, limit, before);
    found.push(...(page?.records ?? []).map((record) => record.requestId));
    before = page?.next ?? null;
    count++;
  } while (before !== null);
  return { found, count };
}

test('all records of a model are found, once and in their order, however few of them are among the others', async () => {
  await fc.assert(
    fc.asyncProperty(
      uses,
      fc.constantFrom<RecordFilter>({}, { keyId: 'key_a' }),
      fc.integer({ min: 1, max: 9 }),
      fc.record({ recordsPerRead: fc.integer({ min: 1, max: 7 }), maxReads: fc.integer({ min: 1, max: 3 }) }),
      async (made, filter, limit, limits) => {
        const { engine, ids } = await open(made);
        const wanted = ids.filter(
          (_, at) => made[at]?.model === 'rare' && (filter.keyId ?? made[at]?.keyId) === made[at]?.keyId,
        );
        const { found } = await pagesOf(
          createRecordPages(engine, limits),
          { ...filter, model: 'rare' },
          limit,
        );
        await engine.close();
        expect(found).toEqual(wanted.toReversed());
      },
    ),
    propertyRun(60),
  );
});

test('a model of long ago is found without the records since then, and one that no request had without any', async () => {
  const usual = { model: 'usual', hours: 0, ends: true, keyId: 'key_a' } as const;
  const later = Array.from({ length: 400 }, (_, at) => ({ ...usual, hours: at === 0 ? 240 : 0 }));
  const { engine, counted } = await open([{ ...usual, model: 'rare' }, ...later]);
  onTestFinished(() => engine.close());
  const pages = createRecordPages(engine, { recordsPerRead: 10, maxReads: 100 });
  const readsFor = async (model: string) => {
    counted.reads = 0;
    const page = await pages.listRecords({ model }, 5, null);
    return { found: page?.records.length, next: page?.next, isQuick: counted.reads < 15 };
  };
  expect(await readsFor('rare')).toEqual({ found: 1, next: null, isQuick: true });
  expect(await readsFor('never')).toEqual({ found: 0, next: null, isQuick: true });
});

import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import type { Attempt, RecordFilter, SettledRecord } from '../../src/domain/money/consumption.ts';
import { groupFailures } from '../../src/operations/group-failures.ts';
import { createRecordPages } from '../../src/storage/records/record-pages.ts';
import { createStore } from '../../src/storage/store.ts';
import { propertyRun } from '../support/property-run.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { beginningOf, openedRecord, payingKey, plainAttempt, settledRecord } from '../support/stored-rows.ts';
import { openTestEngine } from '../support/test-engine.ts';

const startMs = 1_800_000_000_000;
const hourMs = 3_600_000;

/** A request: its model, how long after the one before it arrived, whether it has ended, and how. */
interface Use {
  readonly model: 'rare' | 'usual';
  readonly hours: number;
  readonly ends: boolean;
  readonly keyId: string;
  readonly tag?: string;
  /** What its upstream said of a failure; none where it answered, `null` where the client left. */
  readonly failure?: string | null | undefined;
  readonly totalMs?: number;
}

/** What a provider may say, which stands in JSON and in patterns otherwise than it is. */
const words = ['100% "full"', 'a_b\\n\n', 'cause', '<b>\u202eno</b>'] as const;

const uses = fc.array(
  fc.record<Use>({
    model: fc.constantFrom('usual', 'usual', 'usual', 'rare'),
    hours: fc.constantFrom(0, 0, 1, 30, 24 * 40),
    ends: fc.constantFrom(true, true, true, false),
    keyId: fc.constantFrom('key_a', 'key_b'),
    tag: fc.constantFrom('', '', 'night'),
    failure: fc.constantFrom(undefined, undefined, null, ...words),
    totalMs: fc.constantFrom(5, 50),
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
  for (const [at, use] of made.entries()) {
    const { model, keyId, tag = '' } = use;
    atMs += use.hours * hourMs;
    const requestId = requestIdFor(String(at).padStart(4, '0'), atMs);
    const begun = { ...openedRecord, requestId, keyId, model, tag: tag || null };
    ids.push(requestId);
    await store.open(begun);
    if (use.ends)
      await store.settle({ ...settledRecord, requestId, begun: beginningOf(begun), ...endOf(use) });
  }
  const counted = { reads: 0 };
  const counting = {
    ...engine,
    read: (...args: Parameters<typeof engine.read>) => (counted.reads++, engine.read(...args)),
  };
  return { engine: counting, counted, ids };
}

/** How a request ends, beside what its record has from its beginning. */
function endOf({ failure, totalMs = 1 }: Use): Partial<SettledRecord> {
  if (failure === undefined) return { totalMs };
  if (failure === null)
    return { totalMs, outcome: 'client_closed', status: 499, failure: { code: null, cause: null } };
  const upstreamError = { status: 500, code: null, message: failure };
  const attempt: Attempt = { ...plainAttempt, result: 'error', upstreamError };
  const failed = { code: 'upstream_error', cause: null } as const;
  return { totalMs, outcome: 'upstream_failed', status: 502, attempts: [attempt], failure: failed };
}

/** All that the record of a failure says of it. */
function saysOf(failure: string | null | undefined): readonly string[] {
  if (failure === null) return ['client_closed'];
  return failure === undefined ? [] : [failure, 'error', 'upstream_error'];
}

/** Whether a filter wants a request, by what was made. */
function isWanted(
  filter: RecordFilter,
  { model, keyId, tag = '', ends, failure, totalMs = 1 }: Use,
): boolean {
  const { status = 200, outcome = 'completed' } = endOf({ model, keyId, ends, failure, hours: 0 });
  return (
    (filter.keyId ?? keyId) === keyId &&
    (filter.model ?? model) === model &&
    (filter.tag ?? tag) === tag &&
    (filter.outcome === undefined || (ends && filter.outcome === outcome)) &&
    (filter.status === undefined || (ends && filter.status === status)) &&
    (filter.minDurationMs === undefined || (ends && totalMs >= filter.minDurationMs)) &&
    (filter.maxDurationMs === undefined || (ends && totalMs <= filter.maxDurationMs)) &&
    (filter.cause === undefined ||
      (ends && saysOf(failure).some((said) => said.includes(filter.cause ?? ''))))
  );
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

/** Filters of a key and others, each given or not. */
const filters = fc.record<RecordFilter>(
  {
    keyId: fc.constant('key_a'),
    model: fc.constantFrom('rare', 'usual'),
    tag: fc.constantFrom('', 'night'),
    outcome: fc.constantFrom('completed', 'upstream_failed', 'client_closed'),
    status: fc.constantFrom(200, 499, 502),
    minDurationMs: fc.constantFrom(5, 6),
    maxDurationMs: fc.constantFrom(49, 50),
    cause: fc.constantFrom(...words, '%', '_', 'message', 'client_', 'completed'),
  },
  { requiredKeys: [] },
);

test('all records that a filter wants are found, once and in their order, however few of them are among the others', async () => {
  await fc.assert(
    fc.asyncProperty(
      uses,
      filters,
      fc.integer({ min: 1, max: 9 }),
      fc.record({ recordsPerRead: fc.integer({ min: 1, max: 7 }), maxReads: fc.integer({ min: 1, max: 3 }) }),
      async (made, filter, limit, limits) => {
        const { engine, ids } = await open(made);
        const wanted = ids.filter((_, at) => made[at] !== undefined && isWanted(filter, made[at]));
        const { found } = await pagesOf(createRecordPages(engine, limits), filter, limit);
        await engine.close();
        expect(found).toEqual(wanted.toReversed());
      },
    ),
    propertyRun(30),
  );
});

test('a model of long ago is found without the records since then, and what no request had without any', async () => {
  const usual = { model: 'usual', hours: 0, ends: true, keyId: 'key_a' } as const;
  const later = Array.from({ length: 400 }, (_, at) => ({ ...usual, hours: at === 0 ? 240 : 0 }));
  const { engine, counted } = await open([{ ...usual, model: 'rare' }, ...later]);
  onTestFinished(() => engine.close());
  const pages = createRecordPages(engine, { recordsPerRead: 10, maxReads: 100 });
  const readsFor = async (filter: RecordFilter) => {
    counted.reads = 0;
    const page = await pages.listRecords(filter, 5, null);
    return { found: page?.records.length, next: page?.next, isQuick: counted.reads < 15 };
  };
  expect(await readsFor({ model: 'rare' })).toEqual({ found: 1, next: null, isQuick: true });
  for (const filter of [{ model: 'never' }, { outcome: 'lost' }, { status: 404 }, { upstream: 'v' }] as const)
    expect(await readsFor(filter)).toEqual({ found: 0, next: null, isQuick: true });
  expect(await readsFor({ cause: 'refused' })).toEqual({ found: 0, next: null, isQuick: true });
});

test('requests without a code are found by the cause that the report of failures has for them', async () => {
  const engine = openTestEngine(':memory:');
  onTestFinished(() => engine.close());
  const store = createStore(engine, { nextId: () => 'id', now: () => startMs, report: () => {} });
  await store.createKey({ ...payingKey, id: 'key_a' }, 'key_a', null);
  const [left, lost] = [requestIdFor('left', startMs), requestIdFor('lost', startMs)];
  for (const requestId of [left, lost]) await store.open({ ...openedRecord, requestId, keyId: 'key_a' });
  const begun = beginningOf({ ...openedRecord, requestId: left, keyId: 'key_a' });
  const use = { model: 'usual', hours: 0, ends: true, keyId: 'key_a', failure: null } as const;
  await store.settle({ ...settledRecord, requestId: left, begun, ...endOf(use) });
  await store.closeAsLost([lost]);
  const pages = createRecordPages(engine);
  const { groups } = await groupFailures(pages, {});
  const found = groups.map(async ({ code, requestId }) => {
    const page = await pages.listRecords({ cause: String(code) }, 5, null);
    return [code, page?.records.map((record) => record.requestId === requestId)];
  });
  expect(new Set(await Promise.all(found))).toEqual(
    new Set([
      ['client_closed', [true]],
      ['lost', [true]],
    ]),
  );
});

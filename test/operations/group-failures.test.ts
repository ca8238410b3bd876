import { expect, test } from 'vitest';
import type { ConsumptionRecord } from '../../src/domain/money/consumption.ts';
import { groupFailures } from '../../src/operations/group-failures.ts';
import { createRecordPages } from '../../src/storage/records/record-pages.ts';
import { createStore } from '../../src/storage/store.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { beginningOf, openedRecord, payingKey, plainAttempt, settledRecord } from '../support/stored-rows.ts';
import { openTestEngine } from '../support/test-engine.ts';

const startMs = 1_800_000_000_000;
const failed = {
  outcome: 'upstream_failed',
  status: 502,
  failure: { code: 'upstream_error', cause: null },
} as const;

/** Pages of failures, the upstream of each of which is in a list; every failure is of another second. */
async function pagesOf(upstreams: readonly string[]) {
  const engine = openTestEngine(':memory:');
  const store = createStore(engine, { nextId: () => 'id', now: () => startMs, report: () => {} });
  await store.createKey(payingKey, 'hash', null);
  for (const [at, upstream] of upstreams.entries()) {
    const begun = { ...openedRecord, upstream, requestId: requestIdFor(String(at), startMs + at * 1_000) };
    const attempt = { ...plainAttempt, upstream, result: 'error' as const, cause: 'broken. Mend it.' };
    const attempts = [attempt, attempt];
    await store.open(begun);
    await store.settle({
      ...settledRecord,
      ...failed,
      attempts,
      requestId: begun.requestId,
      begun: beginningOf(begun),
    });
  }
  return createRecordPages(engine);
}

test('failures beyond the bounds are counted, and the time down to which they were read is said', async () => {
  const pages = await pagesOf(['a', 'b', 'b', 'c', 'd', ...Array.from({ length: 120 }, () => 'a')]);
  const all = await groupFailures(pages, {}, { maxRecords: 1_000, maxGroups: 3, shownGroups: 2 });
  expect(all).toMatchObject({ records: 125, readToMs: null, other: { groups: 1, requests: 3 } });
  expect(all.groups).toMatchObject([
    { upstream: 'a', requests: 121, calls: 242, cause: 'broken', remedy: 'Mend it.', firstMs: startMs },
    { upstream: 'd', requests: 1, calls: 2 },
  ]);
  const some = await groupFailures(pages, {}, { maxRecords: 50, maxGroups: 3, shownGroups: 2 });
  expect(some).toMatchObject({ records: 100, readToMs: startMs + 25_000, groups: [{ requests: 100 }] });
});

test('a filter that finds nothing for long is given up after some pages, with the time down to which it was searched', async () => {
  let pages = 0;
  const listRecords = async () => {
    pages++;
    return { records: [], next: requestIdFor('x', startMs - pages * 1_000) };
  };
  const report = await groupFailures({ listRecords }, {}, { maxRecords: 500, maxGroups: 3, shownGroups: 2 });
  expect(pages).toBe(10);
  expect(report).toMatchObject({ records: 0, groups: [], readToMs: startMs - 10_000 });
});

test('a request that failed without a failed call is in a group of its own code, and a finished one in none', async () => {
  const base = {
    ...openedRecord,
    createdAtMs: startMs,
    attempts: [],
    status: 499,
  } as unknown as ConsumptionRecord;
  const records: readonly ConsumptionRecord[] = [
    { ...base, outcome: 'client_closed', failure: { code: null, cause: null } },
    {
      ...base,
      outcome: 'upstream_failed',
      failure: { code: 'upstream_rate_limited', cause: 'all of them pause' },
    },
    { ...base, outcome: 'completed', failure: null },
  ];
  const report = await groupFailures({ listRecords: async () => ({ records, next: null }) }, {});
  expect(report.groups).toMatchObject([
    { result: null, code: 'client_closed', cause: null, calls: 0, requests: 1 },
    { result: null, code: 'upstream_rate_limited', cause: 'all of them pause', remedy: null, requests: 1 },
  ]);
});

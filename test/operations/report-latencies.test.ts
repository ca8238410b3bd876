import { expect, test } from 'vitest';
import { reportLatencies } from '../../src/operations/report-latencies.ts';
import { boundOf } from '../../src/shared/time-bounds.ts';
import { createLatencies } from '../../src/storage/records/count-latencies.ts';
import { createStore } from '../../src/storage/store.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { beginningOf, openedRecord, payingKey, plainAttempt, settledRecord } from '../support/stored-rows.ts';
import { openTestEngine } from '../support/test-engine.ts';

const startMs = 1_800_000_000_000;
const slotMs = 1_000;

/** A request: its upstream, its slot, how long its call took, and whether it was the only one. */
interface Use {
  readonly upstream: string;
  readonly slot: number;
  readonly ms: number;
  readonly mode?: 'sync' | 'stream';
  readonly isFailed?: true;
}

async function openWith(uses: readonly Use[]) {
  const engine = openTestEngine(':memory:');
  const store = createStore(engine, { nextId: () => 'id', now: () => startMs, report: () => {} });
  await store.createKey(payingKey, 'hash', null);
  for (const [at, { upstream, slot, ms, mode = 'stream', isFailed }] of uses.entries()) {
    const requestId = requestIdFor(String(at).padStart(4, '0'), startMs + slot * slotMs);
    const begun = { ...openedRecord, upstream, mode, requestId };
    const attempt = { ...plainAttempt, upstream, startedMs: 70, durationMs: ms * 2 };
    await store.open(begun);
    await store.settle({
      ...settledRecord,
      requestId,
      begun: beginningOf(begun),
      upstream,
      attempts: isFailed ? [{ ...attempt, result: 'error' }, attempt] : [attempt],
      firstTextMs: 70 + ms,
      totalMs: 70 + ms * 2,
    });
  }
  return engine;
}

test('times are counted by upstream and slot, from the call on, in the bounds that all counts share', async () => {
  const times = [0, 1, 2, 3, 10, 99, 100, 1_000, 59_999, 3_599_999, 3_600_000, 9_000_000];
  const engine = await openWith([
    ...times.map((ms, slot) => ({ upstream: 'a', slot, ms })),
    { upstream: 'b', slot: 2, ms: 40, mode: 'sync' },
    { upstream: 'b', slot: 2, ms: 50, isFailed: true },
  ]);
  const time = { fromMs: startMs, toMs: startMs + 12 * slotMs };
  const { counts, isWhole } = await createLatencies(engine, 5).countLatencies(time, 1_000);
  expect(isWhole).toBe(true);
  const a = counts.find(({ upstream }) => upstream === 'a');
  const inOrder = (found: typeof a) => found?.firstTexts.toSorted(([one], [other]) => one - other);
  expect(inOrder(a)?.flatMap(([bound, n]) => Array.from({ length: n }, () => bound))).toEqual(
    times.map(boundOf),
  );
  const report = await reportLatencies(createLatencies(engine, 5), time, 12);
  expect(report.slots.map(({ fromMs, isWhole: whole }) => [fromMs - startMs, whole])).toEqual(
    times.map((_, slot) => [slot * slotMs, true]),
  );
  const [first, second] = report.pairs;
  expect(first).toMatchObject({ upstream: 'a', model: 'm', requests: 12, firstText: { requests: 12 } });
  expect(second).toMatchObject({ upstream: 'b', requests: 2, firstText: { requests: 0, p50: null } });
  expect(second?.duration).toMatchObject({ requests: 1, buckets: [{ requests: 1 }] });
  expect(first?.slots[7]?.firstText.p50).toBeGreaterThan(1_000 * 0.975);
  expect(first?.slots[7]?.firstText.p50).toBeLessThan(1_000 * 1.025);
  const buckets = first?.firstText.buckets ?? [];
  expect(buckets.reduce((sum, { requests }) => sum + requests, 0)).toBe(times.length);
  let shorter = -1;
  for (const { upToMs, requests } of buckets) {
    const longest = upToMs ?? Infinity;
    expect(times.filter((ms) => ms > shorter && ms <= longest)).toHaveLength(requests);
    shorter = longest;
  }
});

test('of more records than are counted, the newest are, and the report says so', async () => {
  const engine = await openWith(
    Array.from({ length: 30 }, (_, at) => ({ upstream: 'a', slot: 0, ms: at < 20 ? 5 : 500 })),
  );
  const time = { fromMs: startMs, toMs: startMs + slotMs };
  const { counts, isWhole } = await createLatencies(engine, 4).countLatencies(time, 10);
  expect([isWhole, counts.map(({ firstTexts }) => firstTexts)]).toEqual([false, [[[boundOf(500), 10]]]]);
  // Only as many are looked at for whether there are more as are counted: 29 of 30 are not all.
  for (const [most, isAll] of [
    [29, false],
    [30, false],
    [31, true],
  ] as const)
    expect((await createLatencies(engine, 20).countLatencies(time, most)).isWhole).toBe(isAll);
  expect((await createLatencies(engine, 4).countLatencies({ ...time, upstream: 'b' }, 100)).counts).toEqual(
    [],
  );
});

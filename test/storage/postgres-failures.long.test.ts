import { describe, expect, onTestFinished, test } from 'vitest';
import type { RecordFilter } from '../../src/domain/money/consumption.ts';
import { groupFailures } from '../../src/operations/group-failures.ts';
import { reportLatencies } from '../../src/operations/report-latencies.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLatencies } from '../../src/storage/records/count-latencies.ts';
import { createRecordPages } from '../../src/storage/records/record-pages.ts';
import { createStore } from '../../src/storage/store.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { beginningOf, openedRecord, payingKey, plainAttempt, settledRecord } from '../support/stored-rows.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

const startMs = 1_800_000_000_000;
const words = ['100% "full"', 'a_b\\n', '<b>\u202eno</b>'] as const;

/** Requests of two keys, upstreams and models, a third of which failed, and some that are open or were closed as lost. */
async function fill(engine: Engine): Promise<void> {
  const store = createStore(engine, { nextId: () => 'id', now: () => startMs, report: () => {} });
  for (const id of ['key_a', 'key_b']) await store.createKey({ ...payingKey, id, name: id }, id, null);
  for (let at = 0; at < 60; at++) {
    const requestId = requestIdFor(String(at).padStart(4, '0'), startMs + at * 997);
    const [upstream, model] = [`u${at % 2}`, `m${at % 3}`];
    const begun = {
      ...openedRecord,
      requestId,
      keyId: at % 5 === 0 ? 'key_b' : 'key_a',
      upstream,
      model,
      mode: at % 4 === 0 ? ('sync' as const) : ('stream' as const),
      tag: at % 7 === 0 ? 'night' : null,
    };
    await store.open(begun);
    if (at % 29 === 28) continue;
    if (at % 29 === 27) {
      await store.closeAsLost([requestId]);
      continue;
    }
    const attempt = { ...plainAttempt, upstream, startedMs: 3, durationMs: at * at * 40 };
    const settled = {
      ...settledRecord,
      requestId,
      begun: beginningOf(begun),
      upstream,
      firstTextMs: 3 + at * at,
    };
    const said = { status: 500, code: null, message: words[at % words.length] ?? '' };
    const broken = { ...attempt, result: 'error' as const, cause: 'broken. Mend it.', upstreamError: said };
    if (at % 3 !== 2)
      await store.settle({ ...settled, attempts: [attempt], totalMs: at * at * 40, chargeNanos: at });
    else if (at % 2 === 0) await store.settle({ ...settled, attempts: [broken, attempt] });
    else
      await store.settle({
        ...settled,
        attempts: [broken],
        outcome: 'upstream_failed',
        status: 502,
        failure: { code: 'upstream_error', cause: null },
      });
  }
}

const filters: readonly RecordFilter[] = [
  {},
  { keyId: 'key_b' },
  { outcome: 'upstream_failed' },
  { outcome: 'lost' },
  { status: 500 },
  { hasFailed: true },
  { hasFailed: true, keyId: 'key_b' },
  { upstream: 'u1', model: 'm2', tag: '' },
  { tag: 'night', minDurationMs: 100 },
  { minChargeNanos: 20, maxDurationMs: 50_000 },
  ...words.map((cause) => ({ cause })),
  { cause: 'Mend', keyId: 'key_a', from: startMs + 10_000, to: startMs + 50_000 },
  { cause: '%' },
  { cause: 'lost' },
  { cause: 'upstream_f' },
];

/** All that is read of records by their filters, causes and times, in small reads. */
async function readAll(engine: Engine): Promise<readonly unknown[]> {
  const pages = createRecordPages(engine, { recordsPerRead: 7, maxReads: 3 });
  const found: unknown[] = [];
  for (const filter of filters)
    for (let before: string | null = null; ;) {
      const page = await pages.listRecords(filter, 4, before);
      found.push([filter, page?.records.map(({ requestId }) => requestId)]);
      before = page?.next ?? null;
      if (before === null) break;
    }
  found.push(await groupFailures(pages, {}), await groupFailures(pages, { model: 'm2', upstream: 'u0' }));
  const time = { fromMs: startMs, toMs: startMs + 60_000 };
  const latencies = createLatencies(engine, 9);
  found.push(await reportLatencies(latencies, time, 5));
  found.push(await reportLatencies(latencies, { ...time, upstream: 'u0', model: 'm1' }, 2));
  return found;
}

describe.skipIf(postgresAbsence !== null)(`records on PostgreSQL${absent}`, () => {
  test('are found by their filters, grouped by causes and counted by times as on SQLite', async () => {
    const [sqlite, postgres] = [openTestEngine(':memory:'), await openPostgres()];
    onTestFinished(async () => {
      await Promise.all([sqlite.close(), postgres.close()]);
    });
    await fill(sqlite);
    await fill(postgres);
    const wanted = await readAll(sqlite);
    expect(wanted.length).toBeGreaterThan(filters.length);
    expect(await readAll(postgres)).toEqual(wanted);
  });
});

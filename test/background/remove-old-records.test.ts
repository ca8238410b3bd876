import { expect, onTestFinished, test } from 'vitest';
import { keepRemoving } from '../../src/background/remove-old-records.ts';
import type { RetentionSettings } from '../../src/background/remove-old-records.ts';
import type { Removal } from '../../src/operations/remove-records.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createRetention } from '../../src/storage/retention.ts';
import { createStore } from '../../src/storage/store.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { requestIdFor, requestName } from '../support/request-ids.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { openTestEngine } from '../support/test-engine.ts';

const dayMs = 86_400_000;
const hourMs = 3_600_000;

/** More records of a day than one step removes, and fewer than two steps do. */
const perDay = 600;

/** A remover over a database with `perDay` records on each of two days, four and three days before now. */
async function startRemover(settings: RetentionSettings, isOurs = true) {
  const clock = createFakeClock(Date.UTC(2027, 5, 5, 12));
  const engine = openTestEngine(':memory:');
  await engine.ready;
  const faults: string[] = [];
  const store = createStore(engine, {
    nextId: () => 'id',
    now: () => Date.UTC(2027, 5, 1),
    report: () => {},
  });
  await store.createKey(payingKey, 'hash', 1_000_000);
  for (const day of [1, 2])
    await Promise.all(
      Array.from({ length: perDay }, async (_, number) => {
        const id = requestIdFor(`${day}_${number}`, Date.UTC(2027, 5, day) + number);
        const begun = beginningOf({ ...openedRecord, requestId: id });
        await store.settle({ ...settledRecord, chargeNanos: 0, requestId: id, begun });
      }),
    );
  const removed: number[] = [];
  const runs: [Removal, string][] = [];
  const remover = keepRemoving(createRetention(engine), {
    ready: Promise.resolve(),
    clock,
    settings: () => settings,
    claims: store,
    removeLines: async () => {},
    duty: { isOurs: async () => isOurs },
    onRemoved: (count) => void removed.push(count),
    onRun: (removal, beforeMs) => void runs.push([removal, new Date(beforeMs).toISOString()]),
    onFault: (message, error) => void faults.push(`${message}: ${String(error)}`),
  });
  onTestFinished(async () => {
    await remover.stop();
    const { faults: found } = await verifyLedger(createLedgerAudit(engine));
    await engine.close();
    expect(found).toEqual([]);
  });
  await Promise.resolve();
  const left = async (): Promise<number> => {
    const [[row] = []] = await engine.read([{ sql: 'SELECT count(*) AS count FROM records', values: [] }]);
    return Number(row?.['count']);
  };
  return { clock, remover, removed, runs, faults, left };
}

test('old records are removed in steps with pauses, and the age of the oldest one that is left is known', async () => {
  const archived: string[] = [];
  const { clock, remover, removed, runs, faults, left } = await startRemover({
    keepMs: 3 * dayMs,
    archive: {
      async append(records) {
        archived.push(...records.map((record) => requestName(record.requestId)));
      },
    },
  });
  expect(remover.oldestRecordAgeMs()).toBeNull();
  clock.advance(10_000);
  await eventually('the first step is over', () => removed.length === 1);
  await eventually('it pauses', () => clock.scheduled === 1);
  expect(removed).toEqual([500]);
  clock.advance(20);
  await eventually('the run is over', () => remover.oldestRecordAgeMs() !== null);
  expect(removed).toEqual([500, 100]);
  // Whole days in UTC are removed: noon on the fifth less three days is the second, whose records stay.
  expect(runs).toEqual([[{ records: 600, postings: 1 }, '2027-06-02T00:00:00.000Z']]);
  expect(archived).toEqual(Array.from({ length: perDay }, (_, number) => `1_${number}`));
  expect(remover.oldestRecordAgeMs()).toBe(clock.now() - Date.UTC(2027, 5, 2));
  expect([faults, await left()]).toEqual([[], perDay]);
});

test('nothing is removed that the archive does not take, and it is tried again in an hour', async () => {
  let isFull = true;
  const { clock, remover, removed, faults, left } = await startRemover({
    keepMs: 3 * dayMs,
    archive: {
      async append() {
        if (isFull) throw new Error('no space left on device');
      },
    },
  });
  clock.advance(10_000);
  await eventually('it failed', () => faults.length > 0);
  expect(faults[0]).toContain('no space left on device');
  expect([removed, await left()]).toEqual([[], 2 * perDay]);
  isFull = false;
  await eventually('it waits', () => clock.scheduled === 1);
  clock.advance(hourMs);
  await eventually('a step is over', () => removed.length === 1);
  await eventually('it pauses', () => clock.scheduled === 1);
  clock.advance(20);
  await eventually('the run is over', () => remover.oldestRecordAgeMs() !== null);
  expect(await left()).toBe(perDay);
});

test.each<[string, RetentionSettings, boolean]>([
  ['without records.keep', { keepMs: null, archive: null }, true],
  ['where another process removes for all', { keepMs: dayMs, archive: null }, false],
])('nothing is removed %s', async (_, settings, isOurs) => {
  const { clock, remover, removed, faults, left } = await startRemover(settings, isOurs);
  clock.advance(10_000);
  await eventually('it waits for the next run', () => clock.scheduled === 1);
  expect([removed, faults, await left()]).toEqual([[], [], 2 * perDay]);
  expect(remover.oldestRecordAgeMs() === null).toBe(!isOurs);
});

import { onTestFinished } from 'vitest';
import type { OpenedRecord, SettledRecord } from '../../src/domain/money/consumption.ts';
import type { UsageQuery } from '../../src/domain/ports/usage.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import { createUsage } from '../../src/storage/usage/usage-store.ts';
import { requestIdFor } from './request-ids.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from './stored-rows.ts';
import { readUsage, sumRecords } from './usage-sums.ts';

const dayMs = 86_400_000;
export const startMs = Date.UTC(2027, 4, 1);

/** A store with one key, and requests of it that end at once. */
export async function openStore(engine: Engine) {
  onTestFinished(() => engine.close());
  await engine.ready;
  let ids = 0;
  const store = createStore(engine, { nextId: () => `id ${++ids}`, now: () => startMs, report: () => {} });
  const addKey = (id: string): Promise<void> => store.createKey({ ...payingKey, id, name: id }, id, null);
  await addKey(payingKey.id);
  const use = async (begun: Partial<OpenedRecord>, ended: Partial<SettledRecord> = {}): Promise<void> => {
    const opened: OpenedRecord = {
      ...openedRecord,
      requestId: requestIdFor(`${++ids}`, startMs),
      ...begun,
    };
    await store.settle({
      ...settledRecord,
      requestId: opened.requestId,
      begun: beginningOf(opened),
      ...ended,
    });
  };
  return { engine, store, addKey, use, usage: createUsage(engine) };
}

/** Usage of the month from `startMs` on, by day and key. */
export const month: UsageQuery = {
  by: ['day', 'key'],
  fromMs: startMs,
  toMs: startMs + 31 * dayMs,
  where: {},
  limit: 1_000,
  after: null,
};

/** Usage beside the sums of all records that are there. */
export async function compared(engine: Engine) {
  const [rows = []] = await engine.read([{ sql: 'SELECT * FROM records', values: [] }]);
  const records = new Map(rows.map((row) => [String(row['request_id']), row]));
  const found = await readUsage(createUsage(engine), month, 1_000);
  return { found, expected: sumRecords(records, month) };
}

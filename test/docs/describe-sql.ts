import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Engine } from '../../src/storage/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';

const startMs = 1_800_000_000_000;

/** The queries of the page, in their order. */
const queries = [...readFileSync('docs/operators/storage.md', 'utf8').matchAll(/^```sql\n(.*?)^```$/gms)]
  .flatMap(([, block = '']) => block.split(';'))
  .map((query) => query.trim())
  .filter((query) => query !== '');

/** That the queries of the page on storage find what they say, on an engine. */
export function describeSql(name: string, open: () => Promise<Engine>): void {
  describe(`the queries of docs/operators/storage.md on ${name}`, () => {
    test('find the requests, balances, usage, outcomes and the ledger of a key', async () => {
      const engine = await open();
      onTestFinished(() => engine.close());
      const store = createStore(engine, { nextId: () => 'id', now: () => startMs, report: () => {} });
      await store.createKey({ ...payingKey, name: 'bob' }, 'hash', 1_000);
      for (const [at, outcome] of (['completed', 'completed', 'idle_timeout'] as const).entries()) {
        const begun = { ...openedRecord, requestId: requestIdFor(`${at}`, startMs + at) };
        await store.open(begun);
        const end = { ...settledRecord, requestId: begun.requestId, begun: beginningOf(begun), outcome };
        await store.settle({ ...end, chargeNanos: 7 });
      }
      await store.open({ ...openedRecord, requestId: requestIdFor('open') });
      const [last, balances, usage, outcomes, ledger] = await engine.read(
        queries.map((sql) => ({ sql, values: [] })),
      );
      const ids = [0, 1, 2].map((at) => requestIdFor(`${at}`, startMs + at));
      expect(queries).toHaveLength(5);
      expect(last?.map((row) => [row['request_id'], row['charge']])).toEqual(
        ids.toReversed().map((id) => [id, 7]),
      );
      expect(balances).toEqual([{ name: 'bob', balance: 1_000 - 21 - 5, held: 5, spent: 21 }]);
      expect(usage).toEqual([{ day: Math.floor(startMs / 86_400_000), model: 'm', requests: 3, charge: 21 }]);
      expect(outcomes?.map((row) => [row['outcome'], row['requests'], row['mean_ms']])).toEqual([
        ['completed', 2, 1],
        ['idle_timeout', 1, 1],
      ]);
      expect(ledger?.map((row) => [row['number'], row['kind'], row['delta'], row['reference']])).toEqual([
        [1, 'credit', 1_000, expect.any(String)],
        ...ids.map((id, at) => [at + 2, 'charge', -7, id]),
      ]);
    });
  });
}

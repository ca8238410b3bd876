import { afterEach, beforeEach, expect, test } from 'vitest';
import type { OpenedRecord, Reservation, SettledRecord } from '../../src/domain/money/consumption.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { free } from '../../src/domain/money/pricing.ts';
import { chatFrames } from '../support/scripted-upstream.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { PipelineHarness } from '../support/pipeline-harness.ts';

const body = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] };

let pipeline: PipelineHarness;
beforeEach(async () => void (pipeline = await openPipeline(free, 1_024)));
afterEach(() => pipeline.close());

/** Records of the pipeline's store, whose `open` waits for the test. */
function heldRecords(takesWrites: boolean) {
  const begun = Promise.withResolvers<void>();
  const { store } = pipeline;
  const open = async (record: OpenedRecord): Promise<Reservation> => {
    await begun.promise;
    return store.open(record);
  };
  return { records: { ...store, open, takesWrites }, begun };
}

test('a key without a balance has its record written during the upstream call while the database takes writes', async () => {
  const { records, begun } = heldRecords(true);
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', { records });
  expect(request.call).not.toBeNull();
  request.call?.give(chatFrames(['one']).join(''));
  begun.resolve();
  await request.done;
  expect(request.sent.text).toContain('[DONE]');
});

test('a key without a balance has its record written before the upstream call while the database is failing', async () => {
  const { records, begun } = heldRecords(false);
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', { records });
  expect(request.call).toBeNull();
  begun.reject(new StorageError('database or disk is full', 'full'));
  await request.done;
  expect(request.call).toBeNull();
  expect(request.sent).toMatchObject({
    status: 503,
    text: expect.stringContaining('storage_unavailable') as string,
  });
});

test('a key without a balance is settled as one that held nothing, in case the database forgets that its record was begun', async () => {
  const { store } = pipeline;
  const settled: SettledRecord[] = [];
  const settle = (record: SettledRecord): Promise<number> => {
    settled.push(record);
    return store.settle(record);
  };
  const records = { ...store, settle, takesWrites: true };
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', { records });
  request.call?.give(chatFrames(['one']).join(''));
  await request.done;
  expect(settled.map(({ begun }) => begun?.holdNanos)).toEqual([0]);
});

test.each([
  [1, 'budget_exhausted'],
  [0, 'insufficient_balance'],
])(
  'a key whose budget has no room, and whose balance has %i nano-USD of the one that is needed, is refused as %s',
  async (balanceNanos, code) => {
    const keyId = await pipeline.addKey(10);
    pipeline.change(keyId, {
      budget: { amountNanos: 0, per: 'day', timeZone: 'UTC', warnAt: [], raise: null },
    });
    const open = async (): Promise<Reservation> => ({ granted: false, balanceNanos, heldNanos: 0 });
    const records = { ...pipeline.store, open, takesWrites: true };
    const request = await pipeline.start(keyId, body, 'chat', { records });
    await request.done;
    expect(request.call).toBeNull();
    expect(request.sent.text).toContain(code);
  },
);

test.each([
  [1, "This key's balance is 0.000000001 USD, and this request needs"],
  [0, "This key's balance is used up (0.00 USD)."],
  [-1, "This key's balance is used up (-0.000000001 USD)."],
])('a key with a balance of %i nano-USD, which is too little, is told so', async (balanceNanos, words) => {
  const open = async (): Promise<Reservation> => ({ granted: false, balanceNanos, heldNanos: 0 });
  const records = { ...pipeline.store, open, takesWrites: true };
  const request = await pipeline.start(await pipeline.addKey(10), body, 'chat', { records });
  await request.done;
  expect(request.sent).toMatchObject({ status: 402, text: expect.stringContaining(words) as string });
});

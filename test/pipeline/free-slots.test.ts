import { afterEach, beforeEach, expect, test } from 'vitest';
import { bodyOf } from '../support/body-of.ts';
import { clientFacts } from '../support/client-facts.ts';
import { modelPrice } from '../support/model-price.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { PipelineHarness } from '../support/pipeline-harness.ts';
import { chatFrames } from '../support/scripted-upstream.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { runTextRequest } from '../../src/pipeline/run-request.ts';
import type { Ports } from '../../src/pipeline/ports.ts';

const price = modelPrice({ input: 1_000_000_000, cachedInput: 1_000_000_000, output: 2_000_000_000 });
const body = { model: 'small', stream: true, messages: [{ role: 'user', content: 'hello' }] };
const [first = '', second = ''] = chatFrames(['one ', 'two']);
/** A token for each character of the question and of the first text, and four around the turn. */
const counted = ('hello'.length + 4) * 1_000 + 'one '.length * 2_000;
const balance = 1_000_000_000;
/** How long a slot waits for the record of its request at most, in milliseconds. */
const maxHeldMs = 5;

let pipeline: PipelineHarness;
let keyId: string;
/** The changes to what the limiter and the records did, in their order. */
let order: string[];
let ports: Partial<Ports>;
beforeEach(async () => {
  pipeline = await openPipeline(price, 100);
  keyId = await pipeline.addKey(balance);
  pipeline.change(keyId, { limits: { concurrency: 1 } });
  order = [];
  const { limiter, records } = pipeline.ports;
  ports = {
    limiter: {
      ...limiter,
      async release(...slot) {
        order.push('slot free');
        await limiter.release(...slot);
      },
    },
    records: {
      ...records,
      takesWrites: true,
      async settle(record) {
        const unbookedNanos = await records.settle(record);
        order.push('record settled');
        return unbookedNanos;
      },
    },
  };
});
afterEach(() => pipeline.close());

const account = async () => (await pipeline.store.accounts([keyId])).get(keyId);

/** A stream whose client leaves after its first text; returns once the call is stopped. */
async function leave(instead: Partial<Ports>) {
  const request = await pipeline.start(keyId, body, 'chat', { ...ports, ...instead });
  request.call?.give(first + second);
  await pipeline.quiet();
  request.leave();
  await pipeline.quiet();
  return request;
}

/** What a further request of the key is answered; `null` if it runs. */
async function refusal(): Promise<number | null> {
  const request = await pipeline.start(keyId, body);
  return request.sent.status;
}

test('a slot is free while the text of its request is counted, and the hold stays until the record is settled', async () => {
  const count = Promise.withResolvers<void>();
  const tokens = {
    count: async (text: string) => {
      await count.promise;
      return text.length;
    },
  };
  const left = await leave({ tokens });
  const held = (await account())?.heldNanos ?? 0;
  expect(held).toBeGreaterThan(0);
  expect(await refusal()).toBe(429);
  pipeline.clock.advance(maxHeldMs);
  await pipeline.quiet();
  expect(await refusal()).toBeNull();
  expect((await account())?.heldNanos).toBe(2 * held);
  count.resolve();
  await left.done;
  expect(order).toEqual(['slot free', 'record settled']);
  expect(await account()).toMatchObject({ spentNanos: counted, heldNanos: held });
  expect(await verifyLedger(pipeline.books)).toMatchObject({ faults: [] });
});

test('a slot is free while the database is slow to settle its request', async () => {
  const stored = Promise.withResolvers<void>();
  const { records } = pipeline.ports;
  const left = await leave({
    records: {
      ...records,
      takesWrites: true,
      async settle(record) {
        await stored.promise;
        return records.settle(record);
      },
    },
  });
  expect(await refusal()).toBe(429);
  pipeline.clock.advance(maxHeldMs);
  await pipeline.quiet();
  expect(await refusal()).toBeNull();
  stored.resolve();
  await left.done;
  expect((await account())?.spentNanos).toBe(counted);
});

test('a slot is given back once, and after the record where that does not take long', async () => {
  const left = await leave({});
  await left.done;
  expect(order).toEqual(['record settled', 'slot free']);
});

test('a slot is free when the call is over, although its client has not read the answer', async () => {
  const parts = chatFrames(['one ', 'two']).map((frame) => Buffer.from(frame));
  let end = (): void => {};
  const read = Promise.withResolvers<void>();
  const upstreams: Ports['upstreams'] = {
    call: async () => ({
      kind: 'answer',
      status: 200,
      contentType: 'text/event-stream',
      retryAfterMs: null,
      ...bodyOf(async () => parts.shift() ?? null),
      whenOver: (callback) => void (end = callback),
      release: () => {},
    }),
  };
  const done = runTextRequest(
    'chat',
    {
      ...clientFacts('a'.repeat(32), keyId, body),
      onGone: () => {},
      answer: async () => {},
      open: () => {},
      send: () => read.promise,
      end: async () => {},
      tearDown: async () => {},
    },
    { ...pipeline.ports, ...ports, upstreams },
  );
  await pipeline.quiet();
  expect(await refusal()).toBe(429);
  end();
  await pipeline.quiet();
  expect(await refusal()).toBeNull();
  read.resolve();
  await done;
  expect(order).toEqual(['slot free', 'record settled']);
});

import { afterEach, beforeEach, expect, test } from 'vitest';
import { chatFrames } from '../support/scripted-upstream.ts';
import { modelPrice } from '../support/model-price.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { PipelineHarness } from '../support/pipeline-harness.ts';

const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
const defaultLimits = { concurrency: 1, requestsPerMinute: 10, queueWaitMs: 60_000 };

let pipeline: PipelineHarness;
beforeEach(async () => {
  pipeline = await openPipeline(modelPrice({ input: 1 }), 100);
});
afterEach(() => pipeline.close());

test('the key is looked up again after a wait for a slot, and only then', async () => {
  const keyId = await pipeline.addKey(null);
  let lookUps = 0;
  const { keys } = pipeline.ports;
  const find: typeof keys.find = (presented) => {
    lookUps++;
    return keys.find(presented);
  };
  const instead = { defaultLimits, keys: { ...keys, find } };
  const first = await pipeline.start(keyId, body, 'chat', instead);
  expect(lookUps).toBe(1);
  const second = await pipeline.start(keyId, body, 'chat', instead);
  expect(second.call).toBeNull();
  expect(lookUps).toBe(2);
  first.call?.give(chatFrames(['one']).join(''));
  await first.done;
  await pipeline.quiet();
  expect(lookUps).toBe(3);
  second.leave();
  await second.done;
});

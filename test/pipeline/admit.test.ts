import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemoryUpstreamLimiters } from '../../src/coordination/upstream-limiter/memory-upstream-limiters.ts';
import type { Ports } from '../../src/pipeline/ports.ts';
import { chatFrames } from '../support/scripted-upstream.ts';
import { modelPrice } from '../support/model-price.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { PipelineHarness } from '../support/pipeline-harness.ts';
import { limiterSettings } from '../support/limiter-scene.ts';

const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
const defaultLimits = { concurrency: 1, requestsPerMinute: 10, queueWaitMs: 60_000 };

let pipeline: PipelineHarness;
beforeEach(async () => {
  pipeline = await openPipeline(modelPrice({ input: 1 }), 100);
});
afterEach(() => pipeline.close());

let lookUps: number;

/** The directory of keys, whose look-ups are counted from now on. */
function countLookUps(): Ports['keys'] {
  const { keys } = pipeline.ports;
  lookUps = 0;
  const find: typeof keys.find = (presented) => {
    lookUps++;
    return keys.find(presented);
  };
  return { ...keys, find };
}

test('the key is looked up again after a wait for a permit of an upstream, and only then', async () => {
  const { clock } = pipeline;
  const keyId = await pipeline.addKey(null);
  const upstreamLimiters = new MemoryUpstreamLimiters(
    clock,
    new Map([['local', limiterSettings({ maxInFlight: 1 })]]),
  );
  const instead = { upstreamLimiters, keys: countLookUps() };
  const first = await pipeline.start(keyId, body, 'chat', instead);
  expect(first.call).not.toBeNull();
  const second = await pipeline.start(keyId, body, 'chat', instead);
  expect(second.call).toBeNull();
  expect(lookUps).toBe(2);
  clock.advance(100);
  first.call?.give(chatFrames(['one']).join(''));
  await first.done;
  await pipeline.quiet();
  expect(lookUps).toBe(3);
  second.leave();
  await second.done;
});

test('the key is looked up again after a wait for a slot, and only then', async () => {
  const keyId = await pipeline.addKey(null);
  const instead = { defaultLimits, keys: countLookUps() };
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

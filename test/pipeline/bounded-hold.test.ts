import { afterEach, beforeEach, expect, test } from 'vitest';
import { free } from '../../src/domain/money/pricing.ts';
import { isRefusal } from '../../src/shared/errors.ts';
import { chatFrames } from '../support/scripted-upstream.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { PipelineHarness } from '../support/pipeline-harness.ts';

/** A dollar for a million tokens of output: a token is a thousand billionths. */
const price = { ...free, output: 1_000_000_000 };
const contextTokens = 5_000;

let pipeline: PipelineHarness;
beforeEach(async () => void (pipeline = await openPipeline(price, 1_024)));
afterEach(() => pipeline.close());

test.each([
  ['no more than the context that the list has for the model', 'soft', 1_000_000, 5_000_000],
  ['its cap, which is smaller', 'soft', 100, 100_000],
  ['its cap, as a strict hold is a bound', 'strict', 1_000_000, 1_000_000_000],
] as const)('a request holds output of %s', async (_what, balanceMode, cap, held) => {
  const holds: (number | undefined)[] = [];
  const { models } = pipeline.ports;
  const find: typeof models.find = async (id) => {
    const found = await models.find(id);
    return found === null || isRefusal(found) ? found : { ...found, contextTokens };
  };
  const settle: typeof pipeline.store.settle = (record) => {
    holds.push(record.begun?.holdNanos);
    return pipeline.store.settle(record);
  };
  const keyId = await pipeline.addKey(10_000_000_000);
  const body = { model: 'small', stream: true, max_tokens: cap, messages: [{ role: 'user', content: 'x' }] };
  const request = await pipeline.start(keyId, body, 'chat', {
    balanceMode,
    models: { ...models, find },
    records: { ...pipeline.store, settle, takesWrites: true },
  });
  request.call?.give(chatFrames(['one']).join(''));
  await request.done;
  expect(holds).toEqual([held]);
});

import { afterEach, beforeEach, expect, test } from 'vitest';
import type { SettledObserver } from '../../src/pipeline/ports.ts';
import { modelPrice } from '../support/model-price.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { PipelineHarness } from '../support/pipeline-harness.ts';
import { chatFrames } from '../support/scripted-upstream.ts';

const body = { model: 'm', stream: true, messages: [{ role: 'user', content: 'x' }] };

let pipeline: PipelineHarness;
let told: (readonly unknown[])[];
let observe: SettledObserver;
beforeEach(async () => {
  pipeline = await openPipeline(modelPrice({ input: 1_000_000, output: 1_000_000 }), 10);
  told = [];
  observe = (result, { outcome, chargeNanos }, { stage }) =>
    void told.push([result.kind, outcome, chargeNanos, stage.stage]);
});
afterEach(() => pipeline.close());

/** A request that is answered in full. */
async function answer(settled: readonly SettledObserver[]) {
  const request = await pipeline.start(await pipeline.addKey(1_000_000), body, 'chat', { settled });
  request.call?.give(chatFrames(['one ', 'two']).join(''));
  request.call?.give(null);
  await request.done;
  return request;
}

test('a feature gets each settled request once, with its charge, before the client gets the end', async () => {
  const sent: string[] = [];
  const request = await pipeline.start(await pipeline.addKey(1_000_000), body, 'chat', {
    settled: [observe, () => void sent.push(request.sent.text)],
  });
  request.call?.give(chatFrames(['one ', 'two']).join(''));
  request.call?.give(null);
  await request.done;
  expect(told).toEqual([['finished', 'completed', 18, 'recorded']]);
  expect(sent).toHaveLength(1);
  expect(sent[0]).toContain('two');
  expect(sent[0]).not.toContain('[DONE]');
  expect(request.sent.text).toContain('[DONE]');
});

test('a feature gets a request that was refused, and one whose client left', async () => {
  const refused = await pipeline.start('no such key', body, 'chat', { settled: [observe] });
  await refused.done;
  const left = await pipeline.start(await pipeline.addKey(null), body, 'chat', { settled: [observe] });
  left.leave();
  left.call?.give(null);
  await left.done;
  expect(told.map(([kind, outcome]) => [kind, outcome])).toEqual([
    ['refused', 'refused'],
    ['interrupted', 'client_closed'],
  ]);
});

test('a feature that throws is logged: the answer is complete, and the other features get the request', async () => {
  const fail = (): never => {
    throw new Error('a fault of the feature');
  };
  const request = await answer([fail, observe]);
  expect(request.sent.text).toMatch(/two[^]*data: \[DONE\]\n\n$/);
  expect(told).toHaveLength(1);
  expect(pipeline.faults).toEqual(['a feature failed at a settled request']);
  expect(pipeline.ports.inFlight.all()).toEqual([]);
});

import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ExchangeSummary } from '../../src/domain/exchange-summary.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { PipelineHarness } from '../support/pipeline-harness.ts';
import { chatFrames } from '../support/scripted-upstream.ts';
import { modelPrice } from '../support/model-price.ts';

const body = { model: 'small', stream: true, messages: [{ role: 'user', content: 'hello' }] };
const price = modelPrice({ input: 1_000, cachedInput: 1_000, output: 1_000 });

let pipeline: PipelineHarness;
beforeEach(async () => {
  pipeline = await openPipeline(price, 100);
});
afterEach(() => pipeline.close());

test('an answer reaches its client in full although metrics and log fail', async () => {
  const broken = (): never => {
    throw new Error('broken');
  };
  const faults: string[] = [];
  const metrics = { exchangeBegan: broken, streamOpened: broken, exchangeEnded: broken };
  const log = { exchangeEnded: broken };
  const telemetry = createTelemetry([metrics, log], (message) => void faults.push(message));
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', { telemetry });
  request.call?.give(chatFrames(['one ', 'two']).join(''));
  await request.done;
  expect(request.sent.text).toMatch(/two[^]*data: \[DONE\]\n\n$/);
  expect(faults.length).toBeGreaterThan(2);
});

test('a stream that could not be opened is not counted as one', async () => {
  const counted: string[] = [];
  let ended: ExchangeSummary | null = null;
  const telemetry = {
    ...pipeline.ports.telemetry,
    streamOpened: () => void counted.push('opened'),
    exchangeEnded: (summary: ExchangeSummary) => void (ended = summary),
  };
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', { telemetry });
  request.failToOpen();
  request.call?.give(chatFrames(['one ', 'two']).join(''));
  await request.done;
  expect(counted).toEqual([]);
  expect(ended).toMatchObject({ streamOpened: false, outcome: 'server_error' });
});

test('a keep-alive comment that could not open its stream is a fault in the log, and nothing more', async () => {
  const faults: string[] = [];
  const telemetry = { ...pipeline.ports.telemetry, fault: (message: string) => void faults.push(message) };
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', { telemetry });
  request.failToOpen();
  expect(() => pipeline.clock.advance(30_000)).not.toThrow();
  await pipeline.quiet();
  expect(faults).toEqual(['keep-alive comment failed', 'keep-alive comment failed']);
  request.leave();
  await request.done;
});

test('implausible usage of an answer that breaks off is reported', async () => {
  const faults: string[] = [];
  const telemetry = { ...pipeline.ports.telemetry, fault: (message: string) => void faults.push(message) };
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', { telemetry });
  const [opening = '', text = ''] = chatFrames(['one ']);
  const usage = { prompt_tokens: 999_999_999, completion_tokens: 1, total_tokens: 1_000_000_000 };
  request.call?.give(`${opening}${text}data: ${JSON.stringify({ choices: [], usage })}\n\n`);
  request.call?.give({ kind: 'fault', fault: 'broken' });
  await request.done;
  expect(faults).toEqual(['implausible usage from an upstream: counted instead']);
});

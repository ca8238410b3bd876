import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { costOf } from '../../src/domain/money/pricing.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { DrivenRequest, PipelineHarness } from '../support/pipeline-harness.ts';
import { modelPrice } from '../support/model-price.ts';

const events = 50;
const text = 'ab';
const question = 'four';
const price = modelPrice({ input: 3_000_000, cachedInput: 3_000_000, output: 7_000_000 });
const plenty = 1_000_000_000;

/** Every way in which an answer can break off after some of its events. */
const ways: Readonly<Record<string, (request: DrivenRequest) => void>> = {
  'the client leaves': (request) => request.leave(),
  'the connection is reset': ({ call }) =>
    call?.give({ kind: 'fault', fault: 'broken', cause: 'ECONNRESET' }),
  'the upstream hangs up': ({ call }) => call?.give(null),
  'the upstream stalls': ({ call }) => call?.give({ kind: 'fault', fault: 'idle_timeout' }),
  'the upstream sends broken JSON': ({ call }) => call?.give('data: {"choices\n\n'),
};

let pipeline: PipelineHarness;
beforeAll(async () => void (pipeline = await openPipeline(price, 1_000)));
afterAll(() => pipeline.close());

const bodies = {
  chat: { model: 'm', stream: true, messages: [{ role: 'user', content: question }] },
  responses: { model: 'm', stream: true, input: question },
};

/** The frame of the event with this number, with the usage up to it on request. */
function frameOf(number: number, hasUsage: boolean): string {
  const counts = { prompt_tokens: 11, completion_tokens: number, total_tokens: 11 + number };
  const choices = [{ index: 0, delta: { content: text } }];
  return `data: ${JSON.stringify({ choices, ...(hasUsage ? { usage: counts } : {}) })}\n\n`;
}

describe.each(['chat', 'responses'] as const)('a %s answer that breaks off', (protocol) => {
  describe.each([
    ['with its usage on every event', true],
    ['without any usage', false],
  ])('%s', (_name, hasUsage) => {
    test.each(Object.keys(ways))(
      'after any event because %s is charged for the received part, to the nano-dollar',
      async (way) => {
        for (let sent = 0; sent < events; sent++) {
          const keyId = await pipeline.addKey(plenty);
          const request = await pipeline.start(keyId, bodies[protocol], protocol);
          for (let number = 1; number <= sent; number++) request.call?.give(frameOf(number, hasUsage));
          await pipeline.quiet();
          ways[way]?.(request);
          await request.done;
          const counted = hasUsage
            ? { inputTokens: 11, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: sent }
            : {
                inputTokens: question.length + 4,
                cachedInputTokens: 0,
                cacheWriteTokens: 0,
                outputTokens: sent * text.length,
              };
          const charge = sent === 0 ? 0 : costOf(counted, price);
          const account = (await pipeline.store.accounts([keyId])).get(keyId);
          expect(account).toEqual({ balanceNanos: plenty - charge, heldNanos: 0, spentNanos: charge });
          expect(request.sent.text).not.toMatch(/\[DONE\]|response\.completed/);
        }
      },
    );
  });
});

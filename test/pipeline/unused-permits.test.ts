import { expect, test } from 'vitest';
import { MemoryUpstreamLimiters } from '../../src/coordination/upstream-limiter/memory-upstream-limiters.ts';
import { modelPrice } from '../support/model-price.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import { limiterSettings } from '../support/limiter-scene.ts';

test('the requests of a key without money take nothing of the limits of an upstream', async () => {
  const pipeline = await openPipeline(modelPrice({ input: 1_000_000_000 }), 100);
  const settings = limiterSettings({ maxInFlight: 2, requestsPerMinute: 3, tokensPerMinute: 10_000 });
  const upstreamLimiters = new MemoryUpstreamLimiters(pipeline.clock, new Map([['local', settings]]));
  const [poor, rich] = [await pipeline.addKey(0), await pipeline.addKey(1_000_000_000)];
  const body = { model: 'small', messages: [{ role: 'user', content: 'hello' }] };
  for (let count = 0; count < 5; count++) {
    const refused = await pipeline.start(poor, body, 'chat', { upstreamLimiters });
    await refused.done;
    expect(refused.sent.status).toBe(402);
  }
  expect(upstreamLimiters.views()).toMatchObject([{ inFlight: 0, startsLeft: 3, tokensLeft: 10_000 }]);
  const served = await pipeline.start(rich, body, 'chat', { upstreamLimiters });
  expect(upstreamLimiters.views()).toMatchObject([{ inFlight: 1, startsLeft: 2 }]);
  served.leave();
  await served.done;
  upstreamLimiters.close();
  await pipeline.close();
});

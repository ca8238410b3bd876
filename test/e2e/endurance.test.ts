import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { leaveMany, sayWords } from '../support/leaving-clients.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

const leavers = 120;

test('clients that disconnect at random moments leave no request in progress and no busy upstream connection', async () => {
  const upstream = await startUpstream();
  upstream.play(sayWords);
  const gateway = await startGateway({
    upstreamUrl: upstream.url,
    limits: { concurrency: 1_000, requestsPerMinute: 1_000_000 },
  });
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  await leaveMany(gateway, leavers, randomNumbers().random);
  await eventually('every upstream call is over', () => upstream.running === 0);
  await eventually('no upstream connection is left', async () => (await upstream.connections()) === 0);
  expect(upstream.aborted).toBeGreaterThan(leavers / 20);
});

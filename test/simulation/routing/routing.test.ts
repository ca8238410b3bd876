import { expect, test } from 'vitest';
import { playConversations } from './conversations.ts';
import { playFirstTexts } from './first-texts.ts';

const seed = 1;

test('affinity reads nearly as much from the caches as an oracle that sees them, within its bound of load', async () => {
  const plan = { seed, replicas: 4, conversations: 400, perSecond: 2, cacheTokens: 100_000 };
  const [affinity, oracle, spread] = [
    await playConversations(plan, 'affinity'),
    await playConversations(plan, 'oracle'),
    await playConversations(plan, 'least_in_flight'),
  ];
  expect(affinity.requests).toBe(oracle.requests);
  expect(affinity.cachedShare).toBeGreaterThanOrEqual(0.85 * oracle.cachedShare);
  expect(affinity.overBound).toBe(0);
  expect(spread.cachedShare).toBeLessThan(0.85 * oracle.cachedShare);
});

test('fastest has a lower 99th percentile of the first text than the order of the list, and than chance', async () => {
  const plan = { seed, requests: 20_000, perSecond: 10 };
  const [order, random, fastest] = [
    await playFirstTexts(plan, 'order'),
    await playFirstTexts(plan, 'random'),
    await playFirstTexts(plan, 'fastest'),
  ];
  expect(fastest.p50).toBeLessThan(random.p50);
  expect(fastest.p99).toBeLessThan(order.p99);
  expect(fastest.p99).toBeLessThan(random.p99);
});

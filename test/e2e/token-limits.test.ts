import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { eventually } from '../support/eventually.ts';
import { sayTexts, sendJson, startUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const path = '/v1/chat/completions';
const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
/** What each scripted answer uses. */
const tokens = 18;

async function open(options: TestGatewayOptions = {}) {
  const upstream = await startUpstream();
  upstream.play(sayTexts(['a ', 'b']));
  const start = async (): Promise<TestGateway> => {
    const gateway = await startGateway({
      upstreamUrl: upstream.url,
      ...options,
    });
    onTestFinished(() => gateway.close());
    return gateway;
  };
  onTestFinished(() => upstream.close());
  return { upstream, start };
}

const tokenHeaders = ({ headers }: Response) =>
  ['limit', 'remaining', 'reset'].map((name) => headers.get(`x-ratelimit-${name}-tokens`));

describe('a limit of tokens per minute', () => {
  test('refuses a key that has used them until they have left the window, with whose limit it is', async () => {
    const clock = createFakeClock();
    const { upstream, start } = await open({ clock });
    const gateway = await start();
    const { key, secret } = await gateway.gateway.createKey('bob', { tokensPerMinute: tokens + 1 });
    const headers = { authorization: `Bearer ${secret}` };
    const first = await gateway.post(path, body, { headers });
    expect(tokenHeaders(first)).toEqual(['19', '19', '0ms']);
    const second = await gateway.post(path, { ...body, stream: true }, { headers });
    expect(tokenHeaders(second)).toEqual(['19', '1', expect.stringMatching(/^1m\ds$/)]);
    await second.text();
    const refused = await gateway.post(path, body, { headers });
    expect(refused.status).toBe(429);
    expect(tokenHeaders(refused)).toEqual(['19', '0', expect.stringMatching(/^1m\ds$/)]);
    expect(await refused.json()).toMatchObject({
      error: {
        code: 'rate_limit_exceeded',
        message: expect.stringMatching(
          /^This key may use 19 tokens in any 60 seconds and has reached that limit\. Try again in 6\ds\.$/,
        ) as string,
        limit: { source: 'key', kind: 'tokens', limit: 19 },
      },
    });
    expect(upstream.seen).toHaveLength(2);
    clock.advance(Number(refused.headers.get('retry-after-ms')));
    const again = await gateway.post(path, body, { headers });
    expect(again.status).toBe(200);
    // What was refused was no start.
    expect(again.headers.get('x-ratelimit-remaining-requests')).toBe('59');
    expect((await askAdmin(gateway, 'GET', `/keys/${key.id}`)).body.limits).toMatchObject({
      tokens_per_minute: 19,
      tokens_per_day: null,
    });
  });

  test('counts nothing for a request that costs nothing', async () => {
    const { upstream, start } = await open();
    const gateway = await start();
    const { secret } = await gateway.gateway.createKey('bob', { tokensPerMinute: 1 });
    const headers = { authorization: `Bearer ${secret}` };
    const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
    for (const answer of [{}, { choices: [], usage, error: { message: 'no' } }]) {
      upstream.play((response) => sendJson(response, 500, JSON.stringify(answer)));
      expect((await gateway.post(path, body, { headers })).status).toBe(502);
    }
    upstream.play((response) => sendJson(response, 200, JSON.stringify({ choices: [], usage, error: {} })));
    expect((await gateway.post(path, body, { headers })).status).toBe(502);
    upstream.play(sayTexts(['a']));
    expect((await gateway.post(path, body, { headers })).status).toBe(200);
    expect((await gateway.post(path, body, { headers })).status).toBe(429);
  });

  test('is exceeded by no more than the requests that run at once', async () => {
    const { upstream, start } = await open({ limits: { concurrency: 3 } });
    const gateway = await start();
    const { secret } = await gateway.gateway.createKey('bob', { tokensPerMinute: 1 });
    const headers = { authorization: `Bearer ${secret}` };
    const answers = await Promise.all(Array.from({ length: 3 }, () => gateway.post(path, body, { headers })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await gateway.post(path, body, { headers })).status).toBe(429);
    expect(upstream.seen).toHaveLength(3);
  });

  test('is looked at again after a wait for a slot', async () => {
    const { upstream, start } = await open({ limits: { concurrency: 1, queueWait: '20s' } });
    const gateway = await start();
    const { secret } = await gateway.gateway.createKey('bob', { tokensPerMinute: 1 });
    const headers = { authorization: `Bearer ${secret}` };
    const held = Promise.withResolvers<void>();
    upstream.play(async (response, request) => {
      await held.promise;
      return sayTexts(['a'])(response, request);
    });
    const first = gateway.post(path, body, { headers });
    await eventually('the first one runs', () => upstream.seen.length === 1);
    const second = gateway.post(path, body, { headers });
    await eventually(
      'the second one waits',
      async () => (await askAdmin(gateway, 'GET', '/in-flight')).body.data.length === 2,
    );
    held.resolve();
    expect([(await first).status, (await second).status]).toEqual([200, 429]);
    expect(upstream.seen).toHaveLength(1);
  });
});

describe('a limit of tokens per day', () => {
  test('outlives a restart, forbids retries that would be too early, and can be changed and lifted', async () => {
    const { start } = await open({
      storage: join(makeTemporaryFolder(), 'textgate.db'),
      limits: { tokensPerDay: tokens },
    });
    const before = await start();
    const { key, secret } = await before.gateway.createKey('bob');
    const headers = { authorization: `Bearer ${secret}` };
    expect((await before.post(path, body, { headers })).status).toBe(200);
    await before.close();
    const gateway = await start();
    const refused = await gateway.post(path, body, { headers });
    expect(refused.status).toBe(429);
    expect(refused.headers.get('x-should-retry')).toBe('false');
    expect(((await refused.json()) as { error: { message: string } }).error.message).toContain(
      'may use 18 tokens in any 24 hours',
    );
    const set = (changes: object) => askAdmin(gateway, 'PATCH', `/keys/${key.id}`, changes);
    expect((await set({ tokensPerDay: 100 })).body.limits.tokens_per_day).toBe(100);
    expect((await gateway.post(path, body, { headers })).status).toBe(200);
    expect((await set({ tokensPerDay: null })).body.limits.tokens_per_day).toBe(tokens);
    expect((await gateway.post(path, body, { headers })).status).toBe(429);
    expect((await set({ tokensPerDay: 0 })).status).toBe(400);
  });
});

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sayTexts, sendJson, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

/** A thousand nano-USD for a token of input, and two thousand for one of output. */
const price = { input: '1', cacheWrite: '1', output: '2' };
const body = { model: 'small', messages: [{ role: 'user', content: 'x' }], max_tokens: 10 };
/** The hold of its one byte and two turns' marks, and of its cap. */
const holdNanos = (1 + 2 * 16) * 1_000 + 10 * 2_000;

let upstream: ScriptedUpstream;
let gateway: TestGateway;
beforeEach(async () => {
  upstream = await startUpstream();
  upstream.play(sayTexts(['a ', 'b']));
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

async function open(hiddenPrompt?: number): Promise<void> {
  const limits = { balanceMode: 'strict', requestsPerMinute: 1_000_000, concurrency: 100 } as const;
  const named = { url: upstream.url, ...(hiddenPrompt === undefined ? {} : { hiddenPrompt }) };
  const options: TestGatewayOptions = {
    upstreams: { named },
    routes: [{ upstream: 'named', model: 'tiny' }],
    price,
    limits,
  };
  gateway = await startGateway({ upstreamUrl: upstream.url, ...options });
}

async function keyWith(balanceNanos: number) {
  const { secret } = await gateway.gateway.createKey('payer', { balanceNanos });
  const headers = { authorization: `Bearer ${secret}` };
  return async (extra: Record<string, string> = {}) => {
    const response = await gateway.post('/v1/chat/completions', body, { headers: { ...headers, ...extra } });
    return { status: response.status, text: await response.text() };
  };
}

describe('a strict key that has just the money for its request', () => {
  test('is served where the upstream adds no prompt, and refused with the parts of the hold where it may add one', async () => {
    await open(0);
    expect(await (await keyWith(holdNanos))()).toMatchObject({ status: 200 });
    const short = await (await keyWith(holdNanos - 1))();
    expect(short.status).toBe(402);
    expect(short.text).toContain('this request needs 0.000053 USD (prompt 0.000033, answer up to 0.00002). ');
    await gateway.close();
    await open(1_000);
    const refused = await (await keyWith(holdNanos))();
    expect(refused.status).toBe(402);
    expect(refused.text).toContain(
      'this request needs 0.001053 USD (prompt 0.000033, answer up to 0.00002, 0.001 for what the upstream may add). ',
    );
  });

  test('is served once 1,000 answers have shown no hidden prompt, and refused again after one that has', async () => {
    await open();
    const poor = await keyWith(holdNanos);
    expect(await poor()).toMatchObject({ status: 402 });
    const rich = await keyWith(1_000_000_000);
    for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 50 }, () => rich()));
    expect(await poor()).toMatchObject({ status: 200 });
    const choice = { index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' };
    const usage = { prompt_tokens: 533, completion_tokens: 10 };
    upstream.play((response) => sendJson(response, 200, JSON.stringify({ choices: [choice], usage })));
    expect(await rich()).toMatchObject({ status: 200 });
    const refused = await (await keyWith(holdNanos + 499_999))();
    expect(refused).toMatchObject({ status: 402 });
    expect(await (await keyWith(holdNanos + 500_000))()).toMatchObject({ status: 200 });
  });
});

test('a ceiling of costs needs no room for a hidden prompt that there is not', async () => {
  await open(0);
  const ask = await keyWith(1_000_000_000);
  expect(await ask({ 'x-textgate-max-cost': '0.000053' })).toMatchObject({ status: 200 });
  expect(await ask({ 'x-textgate-max-cost': '0.000052' })).toMatchObject({ status: 400 });
});

test('what a longer prompt than the named one costs is paid as far as a ceiling pays for it', async () => {
  await open(0);
  const choice = { index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' };
  const usage = { prompt_tokens: 533, completion_tokens: 10 };
  upstream.play((response) => sendJson(response, 200, JSON.stringify({ choices: [choice], usage })));
  const { secret } = await gateway.gateway.createKey('payer', { balanceNanos: 1_000_000_000 });
  const ask = (maxCost: string) =>
    gateway.post('/v1/chat/completions', body, {
      headers: { authorization: `Bearer ${secret}`, 'x-textgate-max-cost': maxCost },
    });
  expect((await ask('1')).headers.get('x-textgate-charge')).toBe('0.000553');
  expect((await ask('0.000053')).headers.get('x-textgate-charge')).toBe('0.000053');
});

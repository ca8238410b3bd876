import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createFakeClock } from '../support/fake-clock.ts';
import { askAdmin } from '../support/admin-client.ts';
import { sendJson, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;
beforeEach(async () => {
  upstream = await startUpstream();
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const open = async (options: TestGatewayOptions): Promise<void> => {
  gateway = await startGateway({ upstreamUrl: upstream.url, ...options });
};
const ask = async (content: string, usage: object, dialect: 'chat' | 'anthropic'): Promise<unknown> => {
  const text = { content: [{ type: 'text', text: 'yes' }], stop_reason: 'end_turn' };
  const choices = [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }];
  const answer = dialect === 'chat' ? { choices, usage } : { ...text, usage };
  upstream.play((response) => sendJson(response, 200, JSON.stringify(answer)));
  const sent = { model: 'small', messages: [{ role: 'user', content }] };
  return (await gateway.post('/v1/chat/completions', sent)).json();
};
const lastRecord = async () => (await askAdmin(gateway, 'GET', '/records?limit=1')).body.data[0];
const balanced = async (): Promise<unknown> => (await askAdmin(gateway, 'GET', '/ledger')).body.faults;

describe('input written to the provider’s cache', () => {
  const usage = {
    input_tokens: 50,
    cache_read_input_tokens: 200,
    cache_creation_input_tokens: 100,
    output_tokens: 30,
  };

  test.each([
    ['a quarter more than other input by default', {}, '3.75', 50 * 3 + 200 * 0.3 + 100 * 3.75 + 30 * 15],
    ['the configured price', { cacheWrite: '6' }, '6.00', 50 * 3 + 200 * 0.3 + 100 * 6 + 30 * 15],
  ])('costs %s, and is recorded', async (_name, extra, shown, microUsd) => {
    const price = { input: '3', cachedInput: '0.30', output: '15', ...extra };
    await open({ dialect: 'anthropic', price });
    const { usage: told } = (await ask('x', usage, 'anthropic')) as { usage: object };
    expect(told).toMatchObject({
      prompt_tokens: 350,
      prompt_tokens_details: { cached_tokens: 200, cache_write_tokens: 100 },
    });
    const record = await lastRecord();
    expect(record).toMatchObject({
      usage: { input_tokens: 350, cached_input_tokens: 200, cache_write_tokens: 100, output_tokens: 30 },
      price: { input: '3.00', cached_input: '0.30', cache_write: shown, output: '15.00', request: '0.00' },
    });
    expect(Number(record.charge) * 1e6).toBeCloseTo(microUsd, 3);
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/gen_ai_client_token_usage_sum\{[^}]*gen_ai_token_type="cache_write"\} 100/);
    expect(metrics).toContain('textgate_tokens_total{model="small",type="cache_write"} 100');
    const csv = (await askAdmin(gateway, 'GET', '/records', undefined, { accept: 'text/csv' })).text;
    const [head = [], row = []] = csv.split('\r\n').map((line) => line.split(','));
    const cells = Object.fromEntries(head.map((name, index) => [name, row[index]]));
    expect(cells).toMatchObject({
      cache_write_tokens: '100',
      price_input: '3.00',
      price_cached_input: '0.30',
      price_cache_write: shown,
      price_output: '15.00',
      price_request: '0.00',
    });
    expect(await balanced()).toEqual([]);
  });
});

describe('a request with more input than a price’s threshold', () => {
  const above = { inputTokens: 1_000, input: '6', output: '22.50' };

  test.each([
    [1_000, { input: '3.00', cache_write: '3.75', output: '15.00' }, 1_000 * 3 + 10 * 15],
    [1_001, { input: '6.00', cache_write: '7.50', output: '22.50' }, 1_001 * 6 + 10 * 22.5],
  ])(
    'is charged as a whole by the price above it (%i tokens), as recorded',
    async (tokens, price, microUsd) => {
      await open({ price: { input: '3', output: '15', above } });
      await ask('x'.repeat(tokens), { prompt_tokens: tokens, completion_tokens: 10 }, 'chat');
      const record = await lastRecord();
      expect(record.price).toMatchObject(price);
      expect(Number(record.charge) * 1e6).toBeCloseTo(microUsd, 3);
      expect(await balanced()).toEqual([]);
    },
  );
});

describe('a price of the public list', () => {
  test('is charged, times what the config says, and is in the record', async () => {
    await open({
      dialect: 'anthropic',
      price: { list: 'anthropic/claude-sonnet-4-5', times: '1.2' },
    });
    await ask('x', { input_tokens: 50, cache_read_input_tokens: 200, output_tokens: 30 }, 'anthropic');
    const record = await lastRecord();
    expect(record.price).toEqual({
      input: '3.60',
      cached_input: '0.36',
      cache_write: '4.50',
      output: '18.00',
      request: '0.00',
    });
    expect(Number(record.charge) * 1e6).toBeCloseTo(50 * 3.6 + 200 * 0.36 + 30 * 18, 3);
    expect(await balanced()).toEqual([]);
  });

  test('is that of the time of the request', async () => {
    const clock = createFakeClock(Date.UTC(2026, 0, 1, 16, 29, 59));
    await open({ clock, price: { list: 'deepseek/deepseek-chat' } });
    const usage = { prompt_tokens: 100, completion_tokens: 10 };
    await ask('x', usage, 'chat');
    expect((await lastRecord()).price).toMatchObject({ input: '0.27', output: '1.10' });
    clock.advance(1_000);
    await ask('x', usage, 'chat');
    expect((await lastRecord()).price).toMatchObject({ input: '0.135', output: '0.55' });
  });

  test('is that of its beginning for a request that goes on while it changes, in hold, charge and record', async () => {
    const clock = createFakeClock(Date.UTC(2026, 0, 1, 16, 29, 59));
    await open({ clock, price: { list: 'deepseek/deepseek-chat' } });
    const { secret } = await gateway.gateway.createKey('payer', { balanceNanos: 1_000_000_000 });
    upstream.play((response) => {
      clock.advance(2_000);
      const choices = [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }];
      sendJson(
        response,
        200,
        JSON.stringify({ choices, usage: { prompt_tokens: 100, completion_tokens: 10 } }),
      );
    });
    const sent = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(sent),
    });
    await answer.text();
    const record = await lastRecord();
    expect(record.price).toMatchObject({ input: '0.27', output: '1.10' });
    expect(Number(record.charge) * 1e6).toBeCloseTo(100 * 0.27 + 10 * 1.1, 3);
    // 1,024 tokens of output at the price of the beginning, and some input.
    expect(Number(record.hold) * 1e6).toBeGreaterThan(1_024 * 1.1);
    expect(await balanced()).toEqual([]);
  });
});

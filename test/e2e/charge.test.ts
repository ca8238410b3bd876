import { beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, cut, sayTexts, sendJson, sendStream } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

const { upstream, gateway } = await openStage({
  price: { input: '1', output: '2' },
  timeouts: { idle: '2s' },
  passthrough: [{ path: '/rerank', upstream: 'local', price: { request: '0.001' } }],
  limits: { concurrency: 1_000 },
});
/** What the scripted usage costs: 11 tokens of input and 7 of output. */
const charge = '0.000025';
const paths = { chat: '/v1/chat/completions', responses: '/v1/responses' } as const;
const messages = [{ role: 'user', content: 'x' }];
const bodies = { chat: { model: 'small', messages }, responses: { model: 'small', input: 'x' } } as const;
const protocols = ['chat', 'responses'] as const;

beforeEach(() => {
  upstream.seen.length = 0;
  upstream.play(sayTexts(['a ', 'b']));
});

const lastRecord = async () => (await askAdmin(gateway, 'GET', '/records?limit=1')).body.data[0];
const chargeOf = ({ headers }: Response) => headers.get('x-textgate-charge');

/** Asks with a key that has some compatibility settings. */
async function askAs(
  compatibility: { readonly usageCost?: boolean; readonly chargeComment?: boolean },
  protocol: (typeof protocols)[number],
  extra: object,
): Promise<Response> {
  const { secret } = await gateway.gateway.createKey('showing', { compatibility });
  const headers = { authorization: `Bearer ${secret}` };
  return gateway.post(paths[protocol], { ...bodies[protocol], ...extra }, { headers });
}

describe('the charge of an answer', () => {
  test.each(protocols)('is in a header of a whole one and equals its receipt: %s', async (protocol) => {
    const response = await gateway.post(paths[protocol], bodies[protocol]);
    expect(chargeOf(response)).toBe(charge);
    expect(await lastRecord()).toMatchObject({ charge, protocol });
    expect(await response.text()).not.toContain('cost');
  });

  test('is nothing on an error of the provider, and not there on a request that was not sent', async () => {
    upstream.play((response) => sendJson(response, 500, '{}'));
    expect(chargeOf(await gateway.post(paths.chat, bodies.chat))).toBe('0.00');
    expect(chargeOf(await gateway.post(paths.chat, { model: 'small' }))).toBeNull();
    expect(chargeOf(await gateway.post(paths.chat, { ...bodies.chat, model: 'other' }))).toBeNull();
  });

  test('is in the header of an error that costs something', async () => {
    upstream.play(() => {});
    const answering = gateway.post(paths.chat, bodies.chat);
    await eventually('the upstream has the request', () => upstream.seen.length > 0);
    const { data } = (await askAdmin(gateway, 'GET', '/in-flight')).body;
    await askAdmin(gateway, 'POST', `/in-flight/${data[0].request_id}/cancel`);
    const response = await answering;
    expect(response.status).toBe(499);
    const record = await lastRecord();
    expect(Number(record.charge)).toBeGreaterThan(0);
    expect(chargeOf(response)).toBe(record.charge);
  });

  test('is nowhere in a stream unless its key asks for it', async () => {
    for (const protocol of protocols) {
      const response = await gateway.post(paths[protocol], {
        ...bodies[protocol],
        stream: true,
        ...(protocol === 'chat' ? { stream_options: { include_usage: true } } : {}),
      });
      expect(chargeOf(response)).toBeNull();
      expect(await response.text()).not.toMatch(/charge|cost/);
    }
  });

  test('is in a comment right before the end of a stream, if its key asks for it', async () => {
    const stream = { stream: true };
    const chat = await (await askAs({ chargeComment: true }, 'chat', stream)).text();
    expect(chat).toMatch(
      /"finish_reason":"stop"\}\]\}\n\n: x-textgate-charge: 0\.000025\ndata: \[DONE\]\n\n$/,
    );
    const responses = await (await askAs({ chargeComment: true }, 'responses', stream)).text();
    expect(responses).toMatch(
      /\n\n: x-textgate-charge: 0\.000025\nevent: response\.completed\ndata: [^\n]+\n\n$/,
    );
    expect(responses).not.toContain('"cost"');
    expect((await lastRecord()).charge).toBe(charge);
  });

  test.each(protocols)(
    'of a stream that breaks off is in a comment before its error: %s',
    async (protocol) => {
      upstream.play((response) => {
        sendStream(response, []).write(chatFrames(['one ']).slice(0, 2).join(''), () => cut(response, 'rst'));
      });
      const live = readLive(askAs({ chargeComment: true }, protocol, { stream: true }));
      await live.ended;
      const record = await lastRecord();
      expect(record.outcome).toBe('upstream_truncated');
      expect(Number(record.charge)).toBeGreaterThan(0);
      const [, shown] =
        /\n\n: x-textgate-charge: ([\d.]+)\n(?:event: error\n)?data: \{/.exec(live.text) ?? [];
      expect(shown).toBe(record.charge);
    },
  );

  test.each(protocols)('is a number in the usage, if its key asks for it: %s', async (protocol) => {
    const whole = await askAs({ usageCost: true }, protocol, {});
    expect(await whole.json()).toMatchObject({ usage: { total_tokens: 18, cost: 0.000025 } });
    const options = protocol === 'chat' ? { stream_options: { include_usage: true } } : {};
    const streamed = await (await askAs({ usageCost: true }, protocol, { stream: true, ...options })).text();
    expect(streamed).toContain('"cost":0.000025}');
    expect(streamed).not.toContain('x-textgate-charge');
  });

  test('is not in the head of an answer that is passed on, which goes out before the settlement', async () => {
    upstream.play((response) => sendJson(response, 200, '{}'));
    const response = await gateway.post('/rerank', '{}');
    expect(response.status).toBe(200);
    expect(chargeOf(response)).toBeNull();
  });
});

describe('a ceiling of costs', () => {
  const most = (amount: string) => ({ headers: { 'x-textgate-max-cost': amount } });
  const ask = (amount: string, extra: object = {}) =>
    gateway.post(paths.chat, { ...bodies.chat, ...extra }, most(amount));
  const sentCap = () =>
    (JSON.parse(upstream.seen.at(-1)?.body ?? '{}') as { max_tokens?: number }).max_tokens;
  /** The bound of the input: a byte, 16 for the message and 16 for the answer, and 4,096; written to a cache it costs 1.25. */
  const inputNanos = (1 + 32 + 4_096) * 1_250;

  test('refuses a request that may cost more before anything is sent, with what it may cost', async () => {
    const response = await ask('0.0052', { max_tokens: 100 });
    expect(response.status).toBe(400);
    expect(response.headers.get('x-textgate-charge')).toBeNull();
    expect(await response.json()).toEqual({
      error: {
        message:
          "This request may cost up to 0.00536125 USD, which is more than its 'x-textgate-max-cost' of 0.0052 USD: " +
          'up to 4129 tokens of input, and up to 100 of output. ' +
          'Raise the header to 0.00536125, or cap its output at 19 tokens.',
        type: 'invalid_request_error',
        param: 'x-textgate-max-cost',
        code: 'max_cost_exceeded',
      },
    });
    expect(upstream.seen).toEqual([]);
    expect((await ask('0.0052', { max_tokens: 19 })).status).toBe(200);
    expect((await ask('0.00536125', { max_tokens: 100 })).status).toBe(200);
    expect((await ask('0.005361249', { max_tokens: 100 })).status).toBe(400);
  });

  test('that does not pay for the input says so', async () => {
    const { error } = (await (await ask('0')).json()) as { error: { message: string } };
    expect(error.message).toMatch(
      /up to 1024 of output\. Raise the header to 0\.00720925 or send less text\.$/,
    );
  });

  test('lowers the output cap of a request without one to what it pays for', async () => {
    const [affordable, holdTokens] = [200, 1_024];
    const nanos = (tokens: number) => ((inputNanos + tokens * 2_000) / 1e9).toFixed(9);
    expect((await ask(nanos(affordable))).status).toBe(200);
    expect(sentCap()).toBe(affordable);
    await gateway.post(paths.responses, { ...bodies.responses, stream: true }, most(nanos(affordable)));
    expect(sentCap()).toBe(affordable);
    expect((await ask('5')).status).toBe(200);
    expect(sentCap()).toBe(holdTokens);
    expect((await ask(nanos(16))).status).toBe(200);
    upstream.seen.length = 0;
    expect((await ask(nanos(15))).status).toBe(400);
    expect(upstream.seen).toEqual([]);
  });

  test('leaves the cap of a request without one alone if there is no ceiling', async () => {
    await gateway.post(paths.chat, bodies.chat);
    expect(sentCap()).toBeUndefined();
  });

  test('is not exceeded by our own count, however much an upstream sends beyond the cap', async () => {
    upstream.play((response) => {
      sendStream(
        response,
        [chatFrames(Array.from({ length: 50 }, () => ' yes'.repeat(100))).slice(0, -2)].flat(),
      );
      response.end('data: [DONE]\n\n');
    });
    const response = await ask('0.0052', { stream: true, max_tokens: 19 });
    await response.text();
    expect(await lastRecord()).toMatchObject({ usage_source: 'counted', usage: { output_tokens: 19 } });
    expect(Number((await lastRecord()).charge)).toBeLessThanOrEqual(0.0052);
    expect((await askAdmin(gateway, 'GET', '/ledger')).body.faults).toEqual([]);
  });

  test('holds for a request with a fixed price, too', async () => {
    upstream.play((response) => sendJson(response, 200, '{}'));
    expect((await gateway.post('/rerank', '{}', most('0.001'))).status).toBe(200);
    const refused = await gateway.post('/rerank', '{}', most('0.000999999'));
    expect(await refused.json()).toMatchObject({ error: { code: 'max_cost_exceeded' } });
    expect((await gateway.post('/rerank', '{}', most('free'))).status).toBe(400);
    expect(upstream.seen).toHaveLength(1);
  });

  test.each([
    '',
    'NaN',
    'Infinity',
    '1e9',
    '1e-3',
    '-1',
    '-0',
    '+1',
    '.5',
    '5.',
    '0x10',
    '1,5',
    '1_000',
    '0.0000000001',
    '9007199.254740992',
    '99999999999999999999',
    '$0.05',
    '0.05 USD',
    '0.05, 0.05',
    '١',
    '9'.repeat(8_000),
  ])('that is no amount is refused rather than ignored: %s', async (amount) => {
    const response = await ask(Buffer.from(amount).toString('latin1'));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { code: 'invalid_value', param: 'x-textgate-max-cost' },
    });
    expect(upstream.seen).toEqual([]);
  });

  test('that is sent twice is refused, whichever of the two is the lower one', async () => {
    for (const amounts of [
      ['5', '0'],
      ['0', '5'],
      ['5', '5'],
    ]) {
      const client = openRaw(gateway.url);
      const headers = amounts.map((amount) => `X-Textgate-Max-Cost: ${amount}\r\n`).join('');
      client.socket.write(
        rawPost(paths.chat, gateway.key, bodies.chat).replace('Host: x\r\n', `Host: x\r\n${headers}`),
      );
      await eventually('the answer is there', () => client.text().includes('\r\n\r\n{'));
      expect(client.text()).toMatch(/^HTTP\/1\.1 400 [^]*"code":"invalid_value"/);
    }
    expect(upstream.seen).toEqual([]);
  });

  test.each(['0', '0.00', '5', '0005', '9007199.254740991'])('may be any amount: %s', async (amount) => {
    expect([200, 400]).toContain((await ask(amount)).status);
    expect((await ask(amount)).status === 200).toBe(Number(amount) > 0);
  });
});

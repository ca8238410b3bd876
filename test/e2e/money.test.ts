import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { readRecords } from '../support/records.ts';
import {
  chatFrames,
  cut,
  sayTexts,
  sendJson,
  sendStream,
  startUpstream,
} from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';
import { opened, storeOver } from '../support/used-database.ts';

/** One dollar for a million input tokens: a thousand nano-USD per token. */
const price = { input: '1', cacheWrite: '1', output: '2' };
const nanosPerInput = 1_000;
const nanosPerOutput = 2_000;
/** The price of the scripted upstream's usage (11 in, 7 out). */
const cost = 11 * nanosPerInput + 7 * nanosPerOutput;
const body = { model: 'small', messages: [{ role: 'user', content: 'x' }], max_tokens: 10 };
const usd = (nanos: number) => (nanos / 1e9).toFixed(9).replace(/0{1,7}$/, '');

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let file: string;
beforeEach(async () => {
  upstream = await startUpstream();
  upstream.play(sayTexts(['a ', 'b']));
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

async function open(options: TestGatewayOptions = {}): Promise<void> {
  const limits = { requestsPerMinute: 1_000_000, concurrency: 1_000, ...options.limits };
  gateway = await startGateway({ upstreamUrl: upstream.url, price, ...options, limits });
}

/** The same with a database in a file, which has threads, and is read by the test. */
async function openOnFile(options: TestGatewayOptions = {}): Promise<void> {
  file = join(makeTemporaryFolder(), 'textgate.db');
  await open({ ...options, storage: file });
}

/** A key with a balance, and functions for its requests. */
async function makeKey(balanceNanos: number) {
  const { key, secret } = await gateway.gateway.createKey('payer', { balanceNanos });
  const headers = { authorization: `Bearer ${secret}` };
  return {
    id: key.id,
    ask: (extra: object = {}, signal: AbortSignal | null = null) =>
      gateway.post('/v1/chat/completions', { ...body, ...extra }, { headers, signal }),
    account: () => accountOf(key.id),
  };
}

async function admin(path: string, sent?: object): Promise<{ status: number; body: Record<string, never> }> {
  const response = await fetch(`${gateway.adminUrl}/admin/keys${path}`, {
    method: sent === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${gateway.adminToken}`, 'content-type': 'application/json' },
    ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, never> };
}

async function accountOf(id: string): Promise<{ balance: string | null; held: string; spent: string }> {
  const { data } = (await admin('?limit=200')).body as unknown as { data: { id: string }[] };
  const { balance, held, spent } = data.find((key) => key.id === id) as never;
  return { balance, held, spent };
}

describe('a key with a balance', () => {
  test('pays for the upstream’s usage, and gets its balance in a header', async () => {
    await openOnFile();
    const { ask, account } = await makeKey(1_000_000_000);
    const response = await ask();
    expect(response.status).toBe(200);
    const held = Number(response.headers.get('x-textgate-balance'));
    expect(held).toBeLessThan(1);
    await response.text();
    expect(await account()).toEqual({ balance: '0.999975', held: '0.00', spent: '0.000025' });
    expect(readRecords(file)).toMatchObject([
      { outcome: 'completed', charge: cost, usage_source: 'upstream' },
    ]);
  });

  test('has no hold left after a complete answer, streamed or not', async () => {
    await open();
    const { ask, account } = await makeKey(1_000_000_000);
    for (const stream of [true, false]) await (await ask({ stream })).text();
    expect(await account()).toMatchObject({ held: '0.00', spent: '0.00005' });
  });

  test('without money left is refused before the upstream call, with a header against retries', async () => {
    await openOnFile();
    const { ask } = await makeKey(0);
    const response = await ask();
    expect(response.status).toBe(402);
    expect(await response.json()).toMatchObject({
      error: { code: 'insufficient_balance', type: 'insufficient_quota' },
    });
    expect(response.headers.get('x-should-retry')).toBe('false');
    expect(upstream.seen).toEqual([]);
    expect(readRecords(file)).toEqual([]);
  });

  test('gets 429 while a running request holds all of its money', async () => {
    await open();
    upstream.play((response) => void sendStream(response, chatFrames(['a']).slice(0, 2)));
    const { ask } = await makeKey(20_000);
    const leaving = new AbortController();
    const running = readLive(ask({ stream: true }, leaving.signal));
    await eventually('the request is in progress', () => running.text !== '');
    const response = await ask();
    expect(response.status).toBe(402);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(response.headers.get('x-should-retry')).toBeNull();
    const message = expect.stringContaining('needs some of it, as its cost is not known beforehand. Wait');
    expect(await response.json()).toMatchObject({ error: { code: 'balance_held', message } });
    leaving.abort();
    await running.ended;
  });

  test('may go below zero when its last request costs more than its hold, and is refused then', async () => {
    await open();
    const { ask, account } = await makeKey(10_000);
    expect((await ask()).status).toBe(200);
    expect(await account()).toEqual({ balance: '-0.000015', held: '0.00', spent: '0.000025' });
    expect((await ask()).status).toBe(402);
  });

  test('pays nothing for a failure before the first text, and for delivered text after that', async () => {
    await openOnFile();
    const { ask, account } = await makeKey(1_000_000_000);
    upstream.play((response) => sendJson(response, 500, '{}'));
    expect((await ask({ stream: true })).status).toBe(502);
    expect(await account()).toEqual({ balance: '1.00', held: '0.00', spent: '0.00' });
    upstream.play((response) => {
      sendStream(response, []).write(chatFrames(['hello']).slice(0, 2).join(''), () => cut(response, 'rst'));
    });
    await readLive(ask({ stream: true })).ended;
    expect(upstream.seen).toHaveLength(2);
    expect(readRecords(file).at(-1)).toMatchObject({
      outcome: 'upstream_truncated',
      usage_source: 'counted',
    });
    const [, record] = readRecords(file);
    const { input_tokens: input = 0, output_tokens: output = 0, charge = 0 } = record ?? {};
    expect(charge).toBe((input ?? 0) * nanosPerInput + (output ?? 0) * nanosPerOutput);
    expect(charge).toBeGreaterThan(0);
    expect((await account()).held).toBe('0.00');
  });

  test('may use a free model without any money', async () => {
    await openOnFile();
    await gateway.close();
    gateway = await startGateway({ upstreamUrl: upstream.url, storage: file });
    const { ask } = await makeKey(0);
    expect((await ask()).status).toBe(200);
  });
});

describe('a key without a balance', () => {
  test('is never refused for money, but its spending is counted', async () => {
    await open();
    const { key, secret } = await gateway.gateway.createKey('free rider');
    const headers = { authorization: `Bearer ${secret}` };
    const response = await gateway.post('/v1/chat/completions', body, { headers });
    expect(response.headers.get('x-textgate-balance')).toBeNull();
    await response.text();
    expect(await accountOf(key.id)).toEqual({ balance: null, held: '0.00', spent: '0.000025' });
  });
});

describe('strict mode', () => {
  /** The hold of the request above: for its one byte, two turns' marks, a hidden prompt, and its cap. */
  const hold = (1 + 2 * 16 + 4_096) * nanosPerInput + 10 * nanosPerOutput;

  test('accepts exactly as many of 500 parallel requests as the balance covers', async () => {
    await openOnFile({ limits: { balanceMode: 'strict' } });
    const gate = Promise.withResolvers<void>();
    upstream.play(async (response, request) => {
      await gate.promise;
      await sayTexts(['x'])(response, request);
    });
    const { ask, account } = await makeKey(3 * hold + hold - 1);
    const asked = Array.from({ length: 500 }, () => ask());
    await eventually('three requests reach the upstream', () => upstream.seen.length === 3);
    let refused = 0;
    for (const asking of asked) void asking.then(({ status }) => (refused += status === 402 ? 1 : 0));
    await eventually('all others are refused', () => refused === 497);
    gate.resolve();
    for (const answer of await Promise.all(asked)) await answer.text();
    expect(upstream.seen).toHaveLength(3);
    expect(await account()).toEqual({
      balance: usd(4 * hold - 1 - 3 * cost),
      held: '0.00',
      spent: usd(3 * cost),
    });
  });

  test.each([
    ['charges a hidden prompt within its bound, down to zero', 4_096, '0.00'],
    ['charges a longer hidden prompt, too, and overdraws', 5_096, usd(-1_000 * nanosPerInput)],
  ])('%s, for a key whose balance is its hold', async (_name, hiddenTokens, balance) => {
    await open({ limits: { balanceMode: 'strict' } });
    const usage = { prompt_tokens: 1 + 2 * 16 + hiddenTokens, completion_tokens: 10 };
    const choice = { index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' };
    upstream.play((response) => sendJson(response, 200, JSON.stringify({ choices: [choice], usage })));
    const { ask, account } = await makeKey(hold);
    expect((await ask()).status).toBe(200);
    expect(await account()).toEqual({
      balance,
      held: '0.00',
      spent: usd(hold + (hiddenTokens - 4_096) * nanosPerInput),
    });
  });

  test('caps the answer of a request without a cap of its own', async () => {
    await open({ limits: { balanceMode: 'strict' }, holdTokens: 77 });
    const { ask } = await makeKey(1_000_000_000);
    await ask({ max_tokens: null });
    await ask({ max_tokens: 5 });
    const caps = upstream.seen.map((seen) => (JSON.parse(seen.body) as { max_tokens?: number }).max_tokens);
    expect(caps).toEqual([77, 5]);
  });
});

describe('strict mode with an upstream that raises small caps', () => {
  test.each([
    ['a cap of its own', { max_tokens: 1 }],
    ['the cap of its model', { max_tokens: null }],
  ])('holds for the raised cap when a request has %s', async (_name, cap) => {
    await open({ limits: { balanceMode: 'strict' }, dialect: 'responses', holdTokens: 1 });
    const output = [{ type: 'message', content: [{ type: 'output_text', text: 'x' }] }];
    const usage = { input_tokens: 1, output_tokens: 16 };
    upstream.play(
      (response) =>
        void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ status: 'completed', output, usage })),
    );
    const hold = (1 + 2 * 16 + 4_096) * nanosPerInput + 16 * nanosPerOutput;
    const poor = await makeKey(hold - 1);
    expect((await poor.ask(cap)).status).toBe(402);
    const { ask, account } = await makeKey(hold);
    expect((await ask(cap)).status).toBe(200);
    expect(await account()).toMatchObject({
      balance: usd(hold - nanosPerInput - 16 * nanosPerOutput),
      held: '0.00',
    });
  });
});

describe('a payment', () => {
  test('is booked once per reference, and refused for another amount with the same reference', async () => {
    await open();
    const { id, account } = await makeKey(1_000_000_000);
    const pay = (amount: string, reference: string) => admin(`/${id}/credits`, { amount, reference });
    expect((await pay('2.50', 'a')).body).toMatchObject({ booked: true, balance: '3.50' });
    expect((await pay('2.50', 'a')).body).toMatchObject({ booked: false, balance: '3.50' });
    expect(await pay('9.00', 'a')).toMatchObject({ status: 400, body: { error: { param: 'reference' } } });
    expect((await pay('2.50', 'b')).body).toMatchObject({ booked: true, balance: '6.00' });
    expect(await account()).toMatchObject({ balance: '6.00' });
  });

  test.each([
    [' inv-1', 'blanks at its ends'],
    ['inv-1 ', 'blanks at its ends'],
    ['inv-1\u{a0}', 'blanks at its ends'],
    ['inv-1\n', 'control characters'],
    ['inv\t1', 'control characters'],
  ])(
    'is refused with the reference %j, which would be another one than is meant',
    async (reference, named) => {
      await open();
      const { id, account } = await makeKey(1_000_000_000);
      const credit = { amount: '5.00', reference };
      const answer = await admin(`/${id}/credits`, credit);
      const error = { param: 'reference', message: expect.stringContaining(named) };
      expect(answer).toMatchObject({ status: 400, body: { error } });
      await expect(gateway.gateway.keys.credit(id, credit)).rejects.toMatchObject({ code: 'invalid_value' });
      expect(await account()).toMatchObject({ balance: '1.00' });
      expect((await admin(`/${id}/credits`, { ...credit, reference: 'inv 1' })).body.booked).toBe(true);
    },
  );

  test.each([['0'], ['-1'], ['1e3'], ['0.0000000001'], [5]])('is refused when it is %j', async (amount) => {
    await open();
    const { id } = await makeKey(0);
    const answer = await admin(`/${id}/credits`, { amount, reference: 'x' });
    expect(answer).toMatchObject({ status: 400, body: { error: { param: 'amount' } } });
  });

  test('is refused when the balance would be too large to be exact', async () => {
    await open();
    const { id, account } = await makeKey(1_000_000_000);
    const pay = (amount: string) => admin(`/${id}/credits`, { amount, reference: amount });
    expect(await pay('9007199.254740991')).toMatchObject({
      status: 400,
      body: { error: { param: 'amount' } },
    });
    expect(await account()).toMatchObject({ balance: '1.00' });
    expect((await pay('9007198.254740991')).body).toMatchObject({ balance: '9007199.254740991' });
  });

  test('gets 404 for an unknown key', async () => {
    await open();
    expect((await admin('/key_nobody/credits', { amount: '1', reference: 'x' })).status).toBe(404);
  });

  test('gives a key without a balance one, which applies from the next request on', async () => {
    await open();
    const { key, secret } = await gateway.gateway.createKey('later');
    const headers = { authorization: `Bearer ${secret}` };
    await (await gateway.post('/v1/chat/completions', body, { headers })).text();
    await admin(`/${key.id}/credits`, { amount: '1', reference: 'x' });
    await (await gateway.post('/v1/chat/completions', body, { headers })).text();
    expect(await accountOf(key.id)).toEqual({ balance: '0.999975', held: '0.00', spent: '0.00005' });
  });
});

describe('the ledger', () => {
  test('can’t be changed or shortened, and adds up to the balances of the accounts', async () => {
    await openOnFile();
    const { ask } = await makeKey(1_000_000_000);
    for (let round = 0; round < 3; round++) await (await ask()).text();
    await gateway.close();
    const database = new DatabaseSync(file, { timeout: 5_000 });
    for (const [statement, reason] of [
      ['UPDATE ledger_rows SET delta = 0', 'append-only'],
      ['DELETE FROM ledger_rows', 'append-only'],
      ['UPDATE record_rows SET charge = 0', 'never changed'],
      ['DELETE FROM record_rows', 'append-only'],
    ] as const)
      expect(() => database.exec(statement)).toThrow(reason);
    const rows = database.prepare('SELECT number, kind, delta FROM ledger ORDER BY number').all();
    expect(rows).toEqual([
      { number: 1, kind: 'credit', delta: 1_000_000_000 },
      ...[2, 3, 4].map((number) => ({ number, kind: 'charge', delta: -cost })),
    ]);
    database.close();
    gateway = await startGateway({ upstreamUrl: upstream.url });
  });
});

describe('a process killed with requests in progress', () => {
  test('releases their holds when it starts again', async () => {
    await openOnFile();
    const { id } = await makeKey(1_000_000_000);
    await gateway.close();
    const engine = openTestEngine(file);
    const store = storeOver(engine);
    for (const hold of [100, 200]) await store.open(opened(requestIdFor(String(hold)), id, hold));
    expect((await store.accounts([id])).get(id)).toMatchObject({ balanceNanos: 999_999_700, heldNanos: 300 });
    await engine.close();
    gateway = await startGateway({ upstreamUrl: upstream.url, storage: file });
    expect(await accountOf(id)).toEqual({ balance: '1.00', held: '0.00', spent: '0.00' });
    expect(readRecords(file).map(({ outcome, charge }) => [outcome, charge])).toEqual([
      ['lost', 0],
      ['lost', 0],
    ]);
  });
});

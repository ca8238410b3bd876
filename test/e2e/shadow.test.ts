import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { ConfigInput } from '../../src/index.ts';
import type { PresentedShadow } from '../../src/http/present/shadow.ts';
import { askAdmin } from '../support/admin-client.ts';
import { findCanaries, plant } from '../support/canaries.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { readLive } from '../support/live-answer.ts';
import {
  chatFrames,
  cut,
  sayTexts,
  sendJson,
  sendStream,
  startUpstream,
} from '../support/scripted-upstream.ts';
import type { Script } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { ShadowInput, TestGatewayOptions } from '../support/test-gateway.ts';

const prompt = 'a prompt that is copied';
const said = ['Hello', ' to the client'];
const shadowSaid = ['canary of the shadow', ' that is longer than the answer'];
const chat = { model: 'small', messages: [{ role: 'user', content: prompt }] };
const price = { input: '1', output: '2' };
/** By the usage that scripted answers report: 11 tokens in, 7 out. */
const costNanos = 25_000;

/** A gateway whose requests all have a shadow, unless `shadow` says otherwise, with a clock that stands still. */
async function open(shadow: Partial<ShadowInput> = {}, options: TestGatewayOptions = {}, settings = {}) {
  const [local, other] = await Promise.all([startUpstream(), startUpstream()]);
  const clock = createFakeClock(Date.UTC(2030, 0, 1, 23, 59));
  const paid = shadow.price === undefined ? { free: true as const } : {};
  const gateway = await startGateway({
    upstreamUrl: local.url,
    upstreams: { other: { url: other.url, apiKey: 'sk-shadow-upstream-secret', ...settings } },
    shadow: { route: { upstream: 'other', model: 'big' }, share: 1, ...paid, ...shadow },
    limits: { requestsPerMinute: 1_000_000 },
    clock,
    ...options,
  });
  onTestFinished(async () => {
    await gateway.close();
    await Promise.all([local.close(), other.close()]);
  });
  local.play(sayTexts(said));
  other.play(sayTexts(shadowSaid));
  const view = async (): Promise<PresentedShadow> =>
    ((await askAdmin(gateway, 'GET', '/shadow')).body as { data: PresentedShadow[] })
      .data[0] as PresentedShadow;
  const ended = (count: number) =>
    eventually(`${count} shadows have ended`, async () => sumOf((await view()).requests) === count);
  const compared = (count: number) =>
    eventually(`${count} shadows are compared`, async () => sumOf((await view()).compared) === count);
  const ask = async (body: object = {}, path = '/v1/chat/completions'): Promise<string> =>
    (await gateway.post(path, { ...chat, ...body })).text();
  return { local, other, clock, gateway, view, ended, compared, ask };
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** An answer without what differs between any two: ids and times. */
function comparable(text: string): string {
  return text
    .replaceAll(/"(id|item_id|response_id)":"[^"]*"/g, '"$1":""')
    .replaceAll(/"(created|created_at|completed_at)":\d+/g, '"$1":0');
}

const requests = [
  ['/v1/chat/completions', chat],
  ['/v1/responses', { model: 'small', input: prompt }],
] as const;

describe('a shadow is invisible to the client', () => {
  test.for<readonly [string, Script]>([
    ['a longer text', sayTexts(shadowSaid)],
    ['an error of its server', (response) => sendJson(response, 500, '{}')],
    ['a refusal', (response) => sendJson(response, 400, '{"error":{"message":"no"}}')],
    ['a broken connection', (response) => cut(response, 'rst')],
    [
      'no JSON',
      (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {'),
    ],
    ['nothing at all', () => {}],
  ])('if it gets %s, in both protocols, whole and streamed', async ([, script]) => {
    const [plain, shadowed] = await Promise.all([open({ share: 0 }), open()]);
    shadowed.other.play(script);
    let count = 0;
    for (const [path, body] of requests)
      for (const stream of [false, true]) {
        const sent = { ...body, stream };
        const [wanted = '', found] = await Promise.all(
          [plain, shadowed].map(async ({ gateway }) => (await gateway.post(path, sent)).text()),
        );
        expect(comparable(found ?? '')).toBe(comparable(wanted));
        expect(wanted).toContain('client');
        count++;
        await eventually('its shadow is sent', () => shadowed.other.seen.length === count);
      }
    expect([plain.other.seen, (await plain.view()).requests]).toEqual([[], {}]);
    const { body: records } = await askAdmin(shadowed.gateway, 'GET', '/records?limit=100');
    expect(records.data).toHaveLength(count);
    for (const record of records.data) {
      expect(record).toMatchObject({ outcome: 'completed', charge: '0.00', upstream: 'local' });
      expect(record.attempts).toMatchObject([{ upstream: 'local', result: 'ok' }]);
    }
  });

  test('also while it hangs: the answer is complete, its slot is free, and only its own timeout ends it', async () => {
    const { other, clock, gateway, view, ask, ended } = await open(
      {},
      { limits: { concurrency: 1, requestsPerMinute: 1_000_000 } },
    );
    other.play(() => {});
    for (let round = 0; round < 3; round++) {
      expect(await ask({ stream: true })).toContain('[DONE]');
      await eventually('the shadow is sent', () => other.seen.length === round + 1);
    }
    expect(await view()).toMatchObject({ running: 3, requests: {}, compared: {} });
    const { body: own } = await askAdmin(gateway, 'GET', '/in-flight');
    expect(own.data).toEqual([]);
    clock.advance(120_000);
    await ended(3);
    expect(await view()).toMatchObject({
      running: 0,
      requests: { first_byte_timeout: 3 },
      compared: { outcome: 3 },
      last_failure: { outcome: 'first_byte_timeout', upstream_error: null },
    });
  });

  test('and does not hold up the close of the gateway: shadows are stopped when draining begins', async () => {
    const { local, other, gateway, ask } = await open();
    other.play(() => {});
    await ask();
    await eventually('the shadow is sent', () => other.seen.length === 1);
    const [head = '', first = '', ...rest] = chatFrames(said);
    const held = Promise.withResolvers<void>();
    local.play(async (response) => {
      sendStream(response, [head, first]);
      await held.promise;
      response.end(rest.join(''));
    });
    const running = readLive(gateway.post('/v1/chat/completions', { ...chat, stream: true }));
    await eventually('the answer has begun', () => running.text.includes('Hello'));
    const closing = gateway.gateway.close();
    await eventually('the shadows are stopped', () => other.aborted === 2);
    expect([local.running, running.text.includes('client')]).toEqual([1, false]);
    held.resolve();
    await Promise.all([running.ended, closing]);
    expect(running.text).toMatch(/client[^]*data: \[DONE\]\n\n$/);
  });

  test('and its failures open no circuit of the requests, but let its own upstream rest', async () => {
    const { other, view, ask, gateway } = await open();
    other.play((response) => sendJson(response, 429, '{}', { 'retry-after': '30' }));
    await ask();
    await eventually('it has failed', async () => sumOf((await view()).requests) === 1);
    await ask();
    await eventually('the next one is left out', async () => (await view()).skipped['upstream'] === 1);
    expect(other.seen).toHaveLength(1);
    const { body } = await askAdmin(gateway, 'GET', '/upstreams');
    expect(body.data).toMatchObject([
      { name: 'local', state: 'ok' },
      { name: 'other', state: 'unknown', availability: 'available', paused_until: null, attempts: {} },
    ]);
  });

  test('and an upstream that fails for clients gets no shadows', async () => {
    const { local, other, view, ask } = await open(
      { route: { upstream: 'local', model: 'big' } },
      {
        routes: [
          { upstream: 'local', model: 'tiny' },
          { upstream: 'other', model: 'tiny' },
        ],
      },
    );
    local.play((response) => sendJson(response, 429, '{}', { 'retry-after': '30' }));
    other.play(sayTexts(said));
    expect(await ask()).toContain('client');
    await ask();
    await eventually('a request got no shadow', async () => ((await view()).skipped['upstream'] ?? 0) > 0);
    expect(local.seen.filter(({ body }) => body.includes('"big"')).length).toBeLessThanOrEqual(1);
  });
});

describe('a shadow is compared with the answer', () => {
  test('by its ending, length, times and cost', async () => {
    const { local, other, clock, view, compared, gateway } = await open(
      { price, budgetPerDay: '1' },
      {
        price: { input: '2', output: '4' },
        routes: [
          { upstream: 'other', model: 'slow' },
          { upstream: 'local', model: 'tiny' },
        ],
      },
    );
    const [firstTold, answerTold, shadowTold] = [
      Promise.withResolvers<void>(),
      Promise.withResolvers<void>(),
      Promise.withResolvers<void>(),
    ];
    const say = (told: Promise<void>, texts: readonly string[], reason?: string): Script => {
      const script = sayTexts(texts, reason);
      return async (response, request) => {
        await told;
        await script(response, request);
      };
    };
    local.play(say(answerTold.promise, said));
    const shadow = say(shadowTold.promise, shadowSaid, 'length');
    other.play(async (response, asked) => {
      if (asked.body.includes('"big"')) return shadow(response, asked);
      await firstTold.promise;
      sendJson(response, 500, '{}');
    });
    const running = readLive(gateway.post('/v1/chat/completions', { ...chat, stream: true }));
    await eventually('both are sent', () => other.seen.length === 2);
    // The time of an attempt that fails before the answer is not the answer's.
    clock.advance(100);
    firstTold.resolve();
    await eventually('another route is tried', () => local.seen.length === 1);
    clock.advance(300);
    answerTold.resolve();
    await running.ended;
    expect((await view()).compared).toEqual({});
    clock.advance(200);
    shadowTold.resolve();
    await compared(1);
    expect(await view()).toMatchObject({
      model: 'small',
      upstream: 'other',
      upstream_model: 'big',
      share: 1,
      requests: { incomplete: 1 },
      compared: { finish_reason: 1 },
      budget: { amount: '1.00', spent: '0.000025', held: '0.00', resets_at: '2030-01-02T00:00:00.000Z' },
      means: {
        pairs: 1,
        answers: { characters: said.join('').length, first_text_ms: 300, total_ms: 300, cost: '0.00005' },
        shadows: {
          characters: shadowSaid.join('').length,
          first_text_ms: 600,
          total_ms: 600,
          cost: '0.000025',
        },
      },
    });
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    for (const line of [
      'textgate_shadow_requests_total{model="small",outcome="incomplete"} 1',
      'textgate_shadow_compared_total{model="small",verdict="finish_reason"} 1',
      `textgate_shadow_spent_nanos_total{model="small"} ${costNanos}`,
      'textgate_shadow_ratio_sum{model="small",kind="first_text"} 2',
      'textgate_shadow_ratio_sum{model="small",kind="cost"} 0.5',
    ])
      expect(metrics).toContain(line);
  });

  test('the same request is sent, with the key of its own upstream and without that of the client', async () => {
    const { local, other, gateway, ended } = await open();
    await (await gateway.post('/v1/chat/completions', { ...chat, stream: true, max_tokens: 77 })).text();
    await ended(1);
    const [real, copy] = [local.seen[0], other.seen[0]];
    expect(JSON.parse(copy?.body ?? '')).toEqual({ ...JSON.parse(real?.body ?? ''), model: 'big' });
    expect(copy?.headers.authorization).toBe('Bearer sk-shadow-upstream-secret');
    expect(JSON.stringify(copy)).not.toContain(gateway.key);
  });

  test('a failed answer differs from one that its shadow finished', async () => {
    const { local, view, compared, ask } = await open();
    local.play((response) => sendJson(response, 500, '{}'));
    expect(await ask()).toContain('upstream_error');
    await compared(1);
    expect(await view()).toMatchObject({
      compared: { outcome: 1 },
      means: { pairs: 0, shadows: { cost: null } },
    });
  });

  test('a client that disconnects stops the shadow, and nothing is compared', async () => {
    const { local, other, view, gateway, ended } = await open();
    local.play((response) => void sendStream(response, chatFrames(said).slice(0, 2)));
    other.play((response) => void sendStream(response, chatFrames(shadowSaid).slice(0, 2)));
    const leaving = new AbortController();
    const init = { signal: leaving.signal };
    const running = readLive(gateway.post('/v1/chat/completions', { ...chat, stream: true }, init));
    await eventually('both have begun', () => running.text.includes('Hello') && other.seen.length === 1);
    leaving.abort();
    await ended(1);
    await eventually('its connection is closed', () => other.aborted === 1);
    expect(await view()).toMatchObject({ requests: { client_closed: 1 }, compared: {}, last_failure: null });
  });

  test('a kept connection that was closed meanwhile is no failure of the shadow', async () => {
    const { other, view, compared, ask } = await open();
    const used = new WeakSet<object>();
    const say = sayTexts(shadowSaid);
    other.play((response, request) => {
      if (response.socket !== null && used.has(response.socket)) return void response.socket.destroy();
      used.add(response.socket ?? response);
      return say(response, request);
    });
    for (let round = 1; round <= 2; round++) {
      await ask();
      await compared(round);
    }
    expect(other.seen).toHaveLength(3);
    expect(await view()).toMatchObject({ requests: { completed: 2 }, compared: { same: 2 } });
  });
});

describe('shadows are bounded', () => {
  test('by the budget of the day, and go on after midnight', async () => {
    // Expected are 38 tokens of input and 16 of output, for 79,500 nano-USD; each costs 25,000 in the end.
    const { clock, view, ask, ended } = await open({ price, budgetPerDay: '0.00012' }, { holdTokens: 16 });
    for (const count of [1, 2]) {
      await ask();
      await ended(count);
    }
    await ask();
    await eventually('the third is left out', async () => (await view()).skipped['budget'] === 1);
    expect((await view()).budget).toMatchObject({ amount: '0.00012', spent: '0.00005', held: '0.00' });
    clock.advance(60_000);
    expect((await view()).budget).toMatchObject({ spent: '0.00', resets_at: '2030-01-03T00:00:00.000Z' });
    await ask();
    await ended(3);
  });

  test('by their number, and nothing is sent beyond it', async () => {
    const { other, view, ask } = await open({ maxInFlight: 2 });
    other.play(() => {});
    for (let round = 0; round < 4; round++) await ask();
    await eventually('two are left out', async () => (await view()).skipped['in_flight'] === 2);
    expect([(await view()).running, other.seen.length]).toEqual([2, 2]);
  });

  test('by the limits of their upstream: where no permit is free, nothing is sent and nothing waits', async () => {
    const { other, view, ask, gateway, clock } = await open({}, {}, { maxInFlight: 1 });
    other.play(() => {});
    for (let round = 0; round < 3; round++) await ask();
    await eventually('two are left out', async () => (await view()).skipped['permit'] === 2);
    expect([(await view()).running, other.seen.length]).toEqual([1, 1]);
    clock.advance(600_000);
    other.play(sayTexts(shadowSaid));
    await eventually('the permit is free again', async () => {
      await ask();
      return ((await view()).requests['completed'] ?? 0) > 0;
    });
    expect((await askAdmin(gateway, 'GET', '/records')).text).not.toContain('"other"');
  });

  test('to their share, which chance selects', async () => {
    const { view, ask } = await open({ share: 0.5, maxInFlight: 64 });
    const rounds = 60;
    await Promise.all(
      Array.from({ length: 2 }, async () => {
        for (let round = 0; round < rounds / 2; round++) await ask();
      }),
    );
    const { requests: over, running } = await view();
    // Less than 8 or more than 52 of 60 come once in 10 billion times.
    expect(Math.abs(sumOf(over) + running - rounds / 2)).toBeLessThan(23);
  });

  test('without a reported usage the cost is estimated by the sizes of both texts', async () => {
    const { other, view, ended, ask } = await open({ price, budgetPerDay: '1' });
    other.play((response) => {
      const message = { role: 'assistant', content: 'x'.repeat(400) };
      sendJson(response, 200, JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }));
    });
    await ask();
    await ended(1);
    const inputTokens = Math.ceil(prompt.length / 4) + 32;
    // Input is reckoned at its dearest kind, that of writes to the cache.
    const expected = Math.ceil(inputTokens * 1.25 * 1_000) + 100 * 2_000;
    expect((await view()).budget.spent).toBe(`${expected / 1e9}`);
  });
});

test('words of shadows and of their failures are in no log, metric, record or answer, nor in the list of shadows', async () => {
  const theirs = 'canary-of-the-shadow-upstream';
  plant(theirs, prompt);
  const { other, gateway, view, ended, ask } = await open(
    { price, budgetPerDay: '1' },
    { storage: join(makeTemporaryFolder(), 'textgate.db') },
  );
  const error = { message: `"${prompt}" is bad: key sk-${theirs}, see https://${theirs}.example.com` };
  const scripts: readonly Script[] = [
    sayTexts(shadowSaid),
    (response) => sendJson(response, 400, JSON.stringify({ error })),
    (response) => void sendStream(response, chatFrames(shadowSaid).slice(0, 2)).end(),
    (response) => void response.writeHead(200, { 'content-type': theirs }).end(theirs),
  ];
  const answers: string[] = [];
  const saidOfFailures: string[] = [];
  for (const [index, script] of scripts.entries()) {
    other.play(script);
    answers.push(await ask({ stream: true }));
    await ended(index + 1);
    const shown = await view();
    findCanaries({ 'the list of shadows': JSON.stringify(shown) });
    saidOfFailures.push(shown.last_failure?.upstream_error?.message ?? '');
  }
  // The words themselves are shown: the search above would find nothing without them.
  expect(saidOfFailures[1]).toContain('is bad: key [key]');
  for (const text of shadowSaid) expect(answers.join('')).not.toContain(text);
  findCanaries({ records: (await askAdmin(gateway, 'GET', '/records')).text });
  const { body } = await askAdmin(gateway, 'GET', '/status');
  expect(body.recent.requests).toBe(scripts.length);
});

test('a reload changes where shadows go; those in progress end, and the budget of the day goes on', async () => {
  const [local, other, third] = await Promise.all([startUpstream(), startUpstream(), startUpstream()]);
  const adminToken = 'an-admin-token-for-tests';
  const configOf = (shadow?: ShadowInput): ConfigInput => ({
    server: { port: 0 },
    admin: { port: 0, token: adminToken },
    storage: { url: 'sqlite::memory:' },
    upstreams: { local: { url: local.url }, other: { url: other.url }, third: { url: third.url } },
    models: {
      small: {
        routes: [{ upstream: 'local', model: 'm' }],
        free: true,
        ...(shadow === undefined ? {} : { shadow }),
      },
    },
  });
  const to = (upstream: string): ShadowInput => ({
    route: { upstream, model: 'm' },
    share: 1,
    price,
    budgetPerDay: '1',
  });
  const clock = createFakeClock();
  const gateway = createGateway(configOf(to('other')), { logLevel: 'silent', clock });
  onTestFinished(async () => {
    await gateway.close();
    await Promise.all([local, other, third].map((upstream) => upstream.close()));
  });
  const { url, adminUrl } = await gateway.listen();
  const { key } = await gateway.keys.create({ name: 'x' });
  const ask = async (): Promise<string> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(chat) };
    return (await fetch(`${url}/v1/chat/completions`, init)).text();
  };
  const views = async (): Promise<readonly PresentedShadow[]> => {
    const headers = { authorization: `Bearer ${adminToken}` };
    return (
      (await (await fetch(`${adminUrl}/admin/shadow`, { headers })).json()) as { data: PresentedShadow[] }
    ).data;
  };
  for (const upstream of [local, third]) upstream.play(sayTexts(said));
  const held = Promise.withResolvers<void>();
  const say = sayTexts(shadowSaid);
  other.play(async (response, request) => {
    await held.promise;
    await say(response, request);
  });
  await ask();
  await eventually('a shadow is sent', () => other.seen.length === 1);
  gateway.reload(configOf(to('third')));
  await ask();
  await eventually('the new route has a shadow', async () => (await views())[0]?.requests['completed'] === 1);
  expect(await views()).toMatchObject([
    { upstream: 'third', running: 1, requests: { completed: 1 }, budget: { spent: '0.000025' } },
  ]);
  clock.advance(10_000);
  held.resolve();
  await eventually('the first shadow has ended', async () => (await views())[0]?.running === 0);
  expect([other.aborted, await views()]).toMatchObject([
    0,
    [{ requests: { completed: 1 }, compared: { same: 1 }, budget: { spent: '0.00005' } }],
  ]);
  await eventually('its connections are closed', async () => {
    clock.advance(1_000);
    return (await other.connections()) === 0;
  });
  gateway.reload(configOf());
  await ask();
  expect(await views()).toEqual([]);
  expect([other.seen.length, third.seen.length]).toEqual([1, 1]);
});

import { expect, onTestFinished, test } from 'vitest';
import type { GatewayStatus } from '../../src/index.ts';
import { maxWatchers } from '../../src/http/admin/status-watch.ts';
import { sessionMs } from '../../src/http/admin/access.ts';
import { askAdmin } from '../support/admin-client.ts';
import { findCanaries } from '../support/canaries.ts';
import { logIn } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

interface Scene {
  readonly upstream: ScriptedUpstream;
  readonly gateway: TestGateway;
  readonly clock: FakeClock;
  readonly status: (query?: string) => Promise<GatewayStatus>;
}

const body = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] };

async function open(options: TestGatewayOptions = {}): Promise<Scene> {
  const upstream = await startUpstream();
  const clock = createFakeClock();
  const gateway = await startGateway({ upstreamUrl: upstream.url, clock, ...options });
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  const status = async (query = ''): Promise<GatewayStatus> =>
    (await askAdmin(gateway, 'GET', `/status${query}`)).body as GatewayStatus;
  return { upstream, gateway, clock, status };
}

/** Watches the status; `events` are those that have arrived so far. */
function watch({ gateway }: Scene, query = '') {
  const headers = { authorization: `Bearer ${gateway.adminToken}`, accept: 'text/event-stream' };
  const live = readLive(fetch(`${gateway.adminUrl}/admin/status${query}`, { headers }));
  const events = (): readonly GatewayStatus[] =>
    [...live.text.matchAll(/^event: status\ndata: (.*)\n\n/gm)].map(
      ([, data = '']) => JSON.parse(data) as GatewayStatus,
    );
  return { live, events };
}

test('shows an idle gateway: ready, nothing in progress, nothing ended', async () => {
  const { status } = await open();
  expect(await status()).toEqual({
    object: 'status',
    at: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    version: expect.stringMatching(/^\d+\.\d+\.\d+/) as string,
    node: null,
    state: 'ready',
    reason: null,
    in_flight: { running: 0, waiting: 0, all_nodes: true, data: [], has_more: false },
    recent: {
      seconds: 1,
      requests: 0,
      per_second: 0,
      output_tokens: 0,
      first_text_ms: { p50: null, p99: null },
      endings: {},
    },
    upstreams: { local: { state: 'unknown', running: 0, waiting: 0 } },
    ledger: { open_holds: 0, imbalance: null, settlement_lag_ms: 0, root: null },
  });
});

test('shows which request runs, which one waits for a slot, and how many are at an upstream', async () => {
  const scene = await open({ limits: { concurrency: 1, queueWait: '60s' } });
  const { upstream, gateway, status } = scene;
  upstream.play((response) => void sendStream(response, chatFrames(['one ']).slice(0, 2)));
  const first = readLive(gateway.post('/v1/chat/completions', body));
  await eventually('the first text is there', () => first.text.includes('one '));
  const second = readLive(gateway.post('/v1/chat/completions', body));
  await eventually('the other one waits', async () => (await status()).in_flight.waiting === 1);

  const { in_flight: inFlight, upstreams } = await status();
  const shared = { key_name: 'test', protocol: 'chat', node: null };
  expect(inFlight).toMatchObject({
    running: 1,
    waiting: 1,
    has_more: false,
    data: [
      { ...shared, mode: 'stream', model: 'small', upstream: 'local', waits_for: null },
      { ...shared, mode: null, model: null, upstream: null, waits_for: 'slot', first_text_ms: null },
    ],
  });
  expect(inFlight.data[0]?.first_text_ms).toEqual(expect.any(Number));
  expect(upstreams).toEqual({ local: { state: 'ok', running: 1, waiting: 0 } });
  findCanaries({ 'the status': JSON.stringify(await status()) });
  expect((await status('?limit=1')).in_flight).toMatchObject({ data: [{}], has_more: true });
  for (const { request_id: id } of inFlight.data) await gateway.gateway.cancel(id);
  await Promise.all([first.ended, second.ended]);
});

test('shows how many clients get the answer of a named request, which of them have joined it, and that it goes on', async () => {
  const scene = await open({ limits: { concurrency: 1, queueWait: '60s' }, resume: { grace: '5m' } });
  const { upstream, gateway, status } = scene;
  upstream.play((response) => void sendStream(response, chatFrames(['one ']).slice(0, 2)));
  const ask = (name: string, signal: AbortSignal | null = null) =>
    readLive(gateway.post('/v1/chat/completions', body, { headers: { 'idempotency-key': name }, signal }));
  const leaving = new AbortController();
  const first = ask('once', leaving.signal);
  await eventually('the first text is there', () => first.text.includes('one '));
  const second = ask('once');
  await eventually('the second one has joined', () => second.text.includes('one '));
  const waiting = ask('other');
  await eventually('another one waits', async () => (await status()).in_flight.waiting === 1);

  const [ran = '', joined = ''] = [first, second].map(({ headers }) => headers.get('x-request-id') ?? '');
  const shown = { first_text_ms: null, waits_for: null };
  const { in_flight: inFlight, upstreams } = await status();
  expect(inFlight).toMatchObject({
    running: 2,
    waiting: 1,
    data: [
      { request_id: ran, listening: 2, joined: null, upstream: 'local' },
      { ...shown, request_id: joined, listening: null, joined: ran, mode: 'stream', upstream: null },
      // Its run has not begun, so it has no client yet: that is no request which goes on without one.
      { ...shown, waits_for: 'slot', listening: null, joined: null, model: null },
    ],
  });
  expect(upstreams).toEqual({ local: { state: 'ok', running: 1, waiting: 0 } });
  expect((await askAdmin(gateway, 'GET', '/in-flight')).body.data).toMatchObject([
    { listening: 2, joined: null },
    { listening: null, joined: ran },
    { listening: null, joined: null },
  ]);

  const { events } = watch(scene);
  leaving.abort();
  await gateway.gateway.cancel(joined);
  await eventually('no client listens any more', async () => {
    scene.clock.advance(1_000);
    return events().at(-1)?.in_flight.data[0]?.listening === 0;
  });
  expect(events().at(-1)?.in_flight).toMatchObject({ running: 1, data: [{ request_id: ran }, {}] });
  for (const { request_id: id } of inFlight.data) await gateway.gateway.cancel(id).catch(() => {});
  await Promise.all([first.ended, second.ended, waiting.ended]);
});

test('adds up what ended in the last minute, and forgets it after that', async () => {
  const { upstream, gateway, clock, status } = await open();
  upstream.play(sayTexts(['one']));
  await (await gateway.post('/v1/chat/completions', body)).text();
  await (await gateway.post('/v1/chat/completions', { model: 'none', messages: [] })).text();
  clock.advance(10_000);
  expect((await status()).recent).toEqual({
    seconds: 10,
    requests: 2,
    per_second: 0.2,
    output_tokens: 7,
    first_text_ms: { p50: 1, p99: 1 },
    endings: { completed: 1, refused: 1 },
  });
  clock.advance(60_000);
  expect((await status()).recent).toMatchObject({ seconds: 60, requests: 0, per_second: 0, endings: {} });
});

test('names what a failing upstream said, and says why the gateway is not ready', async () => {
  const { upstream, gateway, status } = await open({ discover: true });
  upstream.play((response) => void response.writeHead(401).end('{}'));
  await (await gateway.post('/v1/chat/completions', body)).text();
  const { state, reason, upstreams } = await status();
  expect(state).toBe('not ready');
  expect(reason).toMatch(/^no list of models from the upstream yet/);
  expect(upstreams['local']).toMatchObject({ state: 'failing', cause: expect.any(String) as string });
});

test.each(['0', '1001', 'x'])('refuses a limit of %s', async (limit) => {
  const scene = await open();
  for (const accept of ['application/json', 'text/event-stream']) {
    const answer = await askAdmin(scene.gateway, 'GET', `/status?limit=${limit}`, undefined, { accept });
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'invalid_value', param: 'limit' } } });
  }
});

test('is the same from code', async () => {
  const { gateway, status } = await open();
  expect(await gateway.gateway.status({ limit: 5 })).toEqual(await status('?limit=5'));
  await expect(gateway.gateway.status({ limit: 0 })).rejects.toMatchObject({ code: 'invalid_value' });
});

test('a watcher gets the status at once, again when it has changed, and a comment when it has not', async () => {
  const scene = await open();
  const { gateway, upstream, clock } = scene;
  const { live, events } = watch(scene);
  await eventually('the first event is there', () => events().length === 1);
  expect(live.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(live.headers.get('cache-control')).toBe('no-store, no-transform');
  clock.advance(1_000);
  await eventually('nothing has changed', () => live.text.endsWith(': unchanged\n\n'));
  upstream.play(() => {});
  const asked = readLive(gateway.post('/v1/chat/completions', body));
  await eventually('the upstream is called', () => upstream.running === 1);
  clock.advance(1_000);
  await eventually('the request is shown', () => events().at(-1)?.in_flight.running === 1);
  const [id = ''] = (events().at(-1)?.in_flight.data ?? []).map(({ request_id: one }) => one);
  await gateway.gateway.cancel(id);
  await asked.ended;
  clock.advance(1_000);
  await eventually('its end is shown', () => events().at(-1)?.recent.endings.cancelled === 1);
});

test('a stream ends with the gateway, which shows until then what it still waits for', async () => {
  const scene = await open();
  const { gateway, upstream, clock } = scene;
  upstream.play(() => {});
  const asked = readLive(gateway.post('/v1/chat/completions', body));
  await eventually('the upstream is called', () => upstream.running === 1);
  const { live, events } = watch(scene);
  await eventually('the first event is there', () => events().length === 1);
  const closed = gateway.gateway.close();
  clock.advance(1_000);
  await eventually('the drain is shown', () => events().at(-1)?.state === 'draining');
  expect(events().at(-1)).toMatchObject({ reason: 'draining', in_flight: { running: 1 } });
  const [id = ''] = (events().at(-1)?.in_flight.data ?? []).map(({ request_id: one }) => one);
  const cancelled = await askAdmin(gateway, 'POST', `/in-flight/${id}/cancel`);
  expect(cancelled.status).toBe(200);
  await Promise.all([closed, asked.ended, live.ended]);
  expect(live.broken).toBe(false);
});

test('the read-only token reads the same status and the same stream, and cancels nothing', async () => {
  const readOnlyToken = 'a-read-only-token-for-tests';
  const scene = await open({ admin: { readOnlyToken } });
  const { gateway, upstream, status } = scene;
  upstream.play(() => {});
  const asked = readLive(gateway.post('/v1/chat/completions', body));
  await eventually('the upstream is called', () => upstream.running === 1);
  const shown = await status();
  const [{ request_id: id } = { request_id: '' }] = shown.in_flight.data;
  // Otherwise the gateway would wait for it as long as a test may take, if an expectation fails.
  onTestFinished(async () => {
    await gateway.gateway.cancel(id);
    await asked.ended;
  });
  const reader = { ...gateway, adminToken: readOnlyToken };
  const answer = await askAdmin(reader, 'GET', '/status?limit=5');
  expect([answer.status, answer.body]).toEqual([200, shown]);
  const { live, events } = watch({ ...scene, gateway: reader });
  await eventually('the first event is there', () => events().length === 1);
  expect(live.status).toBe(200);
  expect(events()[0]).toEqual(shown);
  expect(await askAdmin(reader, 'POST', `/in-flight/${id}/cancel`)).toMatchObject({
    status: 403,
    body: { error: { code: 'read_only_token' } },
  });
  expect(upstream.running).toBe(1);
});

test('too many watchers are refused, and one that leaves makes room for another', async () => {
  const scene = await open();
  const leaving = new AbortController();
  const { adminUrl, adminToken } = scene.gateway;
  const headers = { authorization: `Bearer ${adminToken}`, accept: 'text/event-stream' };
  const ask = (signal?: AbortSignal): Promise<Response> =>
    fetch(`${adminUrl}/admin/status`, { headers, ...(signal === undefined ? {} : { signal }) });
  // Kept, since a stream whose answer is collected as garbage is closed.
  const watching = [await ask(leaving.signal)];
  watching.push(...(await Promise.all(Array.from({ length: maxWatchers - 1 }, () => ask()))));
  const refused = await ask();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  expect(await refused.json()).toMatchObject({ error: { code: 'overloaded' } });
  expect((await scene.status()).state).toBe('ready');
  leaving.abort();
  await eventually('another one is taken', async () => (await ask()).status === 200);
  expect(watching.map(({ status }) => status)).toEqual(Array<number>(maxWatchers).fill(200));
});

test.each(['a logout', 'the end of its session'])(
  'a stream that a page follows ends with %s',
  async (cause) => {
    const { gateway, clock } = await open();
    const { cookie } = await logIn(gateway, gateway.adminToken);
    const headers = { cookie, accept: 'text/event-stream' };
    const live = readLive(fetch(`${gateway.adminUrl}/admin/status`, { headers }));
    await eventually('the first status is there', () => live.text.includes('event: status'));
    if (cause === 'a logout') {
      const own = { cookie, origin: gateway.adminUrl, 'sec-fetch-site': 'same-origin' };
      await fetch(`${gateway.adminUrl}/console/session`, { method: 'DELETE', headers: own });
    } else clock.advance(sessionMs);
    let hasEnded = false;
    void live.ended.then(() => (hasEnded = true));
    await eventually('the stream has ended', () => {
      clock.advance(1_000);
      return hasEnded;
    });
    expect(live.broken).toBe(false);
  },
);

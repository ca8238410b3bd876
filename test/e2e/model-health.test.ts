import { afterEach, beforeEach, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { eventually } from '../support/eventually.ts';
import { chatFrames, sayTexts, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { Script, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

type Play = Script;

const models = ['ant', 'bee', 'cow'];
const ok = sayTexts(['yes']);
const status =
  (code: number, message = 'no', headers = {}): Play =>
  (response) =>
    sendJson(response, code, JSON.stringify({ error: { message } }), headers);

let upstream: ScriptedUpstream;
let spare: ScriptedUpstream;
let gateway: TestGateway;
/** What the upstream does with a model's requests; it answers those of the others. */
let plays: Record<string, Play>;
beforeEach(async () => {
  plays = {};
  [upstream, spare] = await Promise.all([startUpstream(), startUpstream()]);
  spare.play(ok);
  upstream.play((response, request) => {
    if (request.method === 'GET')
      return sendJson(response, 200, JSON.stringify({ data: models.map((id) => ({ id })) }));
    const { model } = JSON.parse(request.body) as { readonly model: string };
    return (plays[model] ?? ok)(response, request);
  });
});
afterEach(async () => {
  await gateway.close();
  await Promise.all([upstream.close(), spare.close()]);
});

async function start(options: TestGatewayOptions = { discover: true, upstreamUrl: upstream.url }) {
  gateway = await startGateway({ limits: { requestsPerMinute: 10_000 }, ...options });
  await gateway.gateway.modelNames();
}

async function ask(model: string, key = gateway.key, stream = false): Promise<number> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'x' }] }),
  });
  await response.text();
  return response.status;
}

async function anotherKey(): Promise<string> {
  return (await gateway.gateway.createKey('another')).secret;
}

/** The model's requests that reached the upstream. */
const sent = (model: string): number =>
  upstream.seen.filter(({ body }) => body.includes(`"model":"${model}"`)).length;

async function metric(name: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`));
  return Object.fromEntries(
    lines.map((line) => [/(?:model|upstream)="([^"]*)"\}/.exec(line)?.[1], Number(line.split(' ').at(-1))]),
  ) as Record<string, number>;
}

async function ready() {
  const body = (await (await fetch(`${gateway.adminUrl}/readyz`)).json()) as {
    upstreams: { local: { state: string; models?: object } };
  };
  return body.upstreams.local;
}

test('a model’s 429 with retry-after leaves the other models of its upstream in use', async () => {
  await start();
  plays['ant'] = status(429, 'slow down', { 'retry-after': '30' });
  expect(await ask('ant')).toBe(429);
  expect(await ask('ant')).toBe(429);
  expect([await ask('bee'), await ask('cow')]).toEqual([200, 200]);
  expect([sent('ant'), sent('bee'), sent('cow')]).toEqual([1, 1, 1]);
  expect(await metric('textgate_model_available')).toEqual({ ant: 0, bee: 1, cow: 1 });
  expect(await metric('textgate_upstream_model_state')).toEqual({ ant: 0, bee: 2, cow: 2 });
  expect(await metric('textgate_upstream_state')).toEqual({ local: 2 });
  expect(await ready()).toMatchObject({ state: 'ok', models: { ant: { state: 'paused by the provider' } } });
  const { body } = await askAdmin(gateway, 'GET', '/upstreams');
  const [{ availability, paused_until: paused, routes }] = body.data;
  expect([availability, paused]).toEqual(['available', null]);
  expect(routes.data.map(({ health }: { health: { availability: string } }) => health.availability)).toEqual([
    'cooling',
    'available',
    'available',
  ]);
  expect(routes.data[0].health.paused_until).not.toBeNull();
});

test('six 500s of one model for several keys open its circuit, and no other one', async () => {
  await start();
  plays['ant'] = status(500);
  const other = await anotherKey();
  for (let time = 0; time < 3; time++) for (const key of [gateway.key, other]) await ask('ant', key);
  expect(await metric('textgate_model_available')).toEqual({ ant: 0, bee: 1, cow: 1 });
  const { body } = await askAdmin(gateway, 'GET', '/upstreams');
  expect(body.data[0].circuit.state).toBe('closed');
  expect(body.data[0].routes.data[0].health.circuit).toMatchObject({ state: 'open', only_key: null });
});

test('failures of several models at once open the circuit of their upstream, for all of its models', async () => {
  await start();
  plays['ant'] = plays['bee'] = status(500);
  const other = await anotherKey();
  for (let time = 0; time < 2; time++)
    for (const model of ['ant', 'bee']) for (const key of [gateway.key, other]) await ask(model, key);
  expect(await metric('textgate_model_available')).toEqual({ ant: 0, bee: 0, cow: 0 });
  expect(await metric('textgate_upstream_state')).toEqual({ local: 0 });
});

test.each([
  ['a refused key', status(401)],
  ['an account without credit', status(402, 'no credit for ant')],
])('%s counts for all models, for every key', async (_name, play) => {
  await start();
  plays['ant'] = play;
  for (let time = 0; time < 5; time++) await ask('ant');
  expect(await metric('textgate_model_available')).toEqual({ ant: 0, bee: 0, cow: 0 });
});

test('an upstream that can’t be reached counts for all models, for every key', async () => {
  await start();
  await ask('bee');
  await upstream.close();
  for (let time = 0; time < 6; time++) await ask('ant');
  expect(await metric('textgate_model_available')).toEqual({ ant: 0, bee: 0, cow: 0 });
  upstream = await startUpstream();
});

test.each([
  ['the whole upstream without a name', 'come back later', { ant: 0, bee: 0, cow: 0 }],
  ['the model that it names', 'ant is being loaded', { ant: 0, bee: 1, cow: 1 }],
])('a 503 counts for %s', async (_name, message, expected) => {
  await start();
  plays['ant'] = status(503, message);
  const other = await anotherKey();
  for (let time = 0; time < 3; time++) for (const key of [gateway.key, other]) await ask('ant', key);
  expect(await metric('textgate_model_available')).toEqual(expected);
});

test.each<[string, Play]>([
  ['500', status(500)],
  ['503', status(503)],
  ['a closed connection', (response) => void response.destroy()],
  ['an empty answer', (response) => void response.writeHead(200).end()],
])('seven requests of one key that end with %s open no circuit for another key', async (_name, play) => {
  const routes = ['local', 'spare'].map((name) => ({ upstream: name, model: 'ant' }));
  const upstreams = { local: { url: upstream.url }, spare: { url: spare.url } };
  await start({ upstreams, routes });
  plays['ant'] = play;
  for (let time = 0; time < 7; time++) expect(await ask('small')).toBe(200);
  // The key itself is served by the other route, at once.
  expect([sent('ant'), spare.seen.length]).toEqual([5, 7]);
  plays['ant'] = ok;
  const other = await anotherKey();
  expect(await ask('small', other)).toBe(200);
  expect([sent('ant'), spare.seen.length]).toEqual([6, 7]);
});

test('the first text of a stream ends that its upstream is shown as failing after a 429', async () => {
  await start();
  plays['ant'] = status(429);
  await ask('ant');
  expect(await ready()).toMatchObject({ state: 'failing' });
  const [opening = '', text = ''] = chatFrames(['one ', 'two']);
  plays['ant'] = (response) => void sendStream(response, [opening, text]);
  const left = new AbortController();
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    signal: left.signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.key}` },
    body: JSON.stringify({ model: 'ant', stream: true, messages: [{ role: 'user', content: 'x' }] }),
  });
  await response.body?.getReader().read();
  await eventually('the upstream is ok', async () => (await ready()).state === 'ok');
  left.abort();
  const { body } = await askAdmin(gateway, 'GET', '/upstreams');
  expect(body.data[0]).toMatchObject({ state: 'ok', availability: 'available' });
});

test('a model that the upstream lists no more loses its circuit and its series with the next list', async () => {
  const clock = createFakeClock();
  await start({ discover: true, upstreamUrl: upstream.url, clock });
  try {
    plays['ant'] = status(500);
    const other = await anotherKey();
    for (let time = 0; time < 3; time++) for (const key of [gateway.key, other]) await ask('ant', key);
    await ask('bee');
    expect(await metric('textgate_upstream_model_state')).toEqual({ ant: 0, bee: 2 });
    models.splice(models.indexOf('ant'), 1);
    clock.advance(60_000);
    await gateway.gateway.modelNames();
    await eventually('its series is gone', async () => {
      return !('ant' in (await metric('textgate_upstream_model_state')));
    });
    expect(await metric('textgate_upstream_model_state')).toEqual({ bee: 2 });
  } finally {
    models.splice(0, models.length, 'ant', 'bee', 'cow');
  }
});

test('a model that no route of another config leads to loses its circuit and its series at once', async () => {
  const configOf = (model: string) => ({
    server: { port: 0 },
    admin: { port: 0, token: gateway.adminToken },
    storage: { url: 'sqlite::memory:', durability: 'normal' as const },
    limits: { requestsPerMinute: 10_000 },
    upstreams: { local: { url: upstream.url, apiKey: 'sk-upstream-secret' } },
    models: { small: { routes: [{ upstream: 'local', model }], free: true as const } },
  });
  await start({ upstreamUrl: upstream.url, routes: [{ upstream: 'local', model: 'ant' }] });
  expect(gateway.gateway.reload(configOf('ant'))).toEqual([]);
  plays['ant'] = status(500);
  const other = await anotherKey();
  for (let time = 0; time < 3; time++) for (const key of [gateway.key, other]) await ask('small', key);
  expect(await metric('textgate_upstream_model_state')).toEqual({ ant: 0 });
  expect(gateway.gateway.reload(configOf('bee'))).toEqual([]);
  expect(await metric('textgate_upstream_model_state')).toEqual({});
  expect(await ask('small', other)).toBe(200);
  expect(await metric('textgate_upstream_model_state')).toEqual({ bee: 2 });
});

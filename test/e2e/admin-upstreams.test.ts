import { expect, onTestFinished, test } from 'vitest';
import { maxListedRoutes } from '../../src/operations/known-upstreams.ts';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { playProvider } from '../support/examine.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { parseFrames } from '../support/parse-frames.ts';
import { sendJson, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGatewayOptions } from '../support/test-gateway.ts';

const readOnlyToken = 'a-read-only-token-for-tests';
const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };

async function open(options: TestGatewayOptions = {}) {
  const upstream = await startUpstream();
  const clock = createFakeClock();
  const gateway = await startGateway({
    upstreamUrl: upstream.url,
    clock,
    admin: { readOnlyToken },
    ...options,
  });
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  const list = async () => (await askAdmin(gateway, 'GET', '/upstreams')).body as { data: object[] };
  const examine = (name: string, init: RequestInit = {}, token = gateway.adminToken) =>
    fetch(`${gateway.adminUrl}/admin/upstreams/${name}/doctor`, {
      method: 'POST',
      ...init,
      headers: { authorization: `Bearer ${token}`, ...(init.headers as object) },
    });
  return { upstream, clock, gateway, list, examine };
}

test('an upstream is listed with its routes and prices; what is not known is null', async () => {
  const { list, upstream } = await open({ price: { input: '1', output: '2' } });
  const { data } = await list();
  expect(data).toMatchObject([
    {
      name: 'local',
      dialect: 'chat',
      origin: new URL(upstream.url).origin,
      state: 'unknown',
      cause: null,
      circuit: { state: 'closed', open_since: null, trial_at: null, failures_in_a_row: 0 },
      probes: null,
      last_ok_at: null,
      last_failed_at: null,
      running: 0,
      routes: {
        data: [{ model: 'small', upstream_model: 'tiny', place: 1, price: { input: '1.00', above: null } }],
        has_more: false,
      },
      attempts: {},
      violations: {},
    },
  ]);
});

test('of a discovered upstream 200 models are listed; before its first list none is known', async () => {
  const { list, upstream, gateway } = await open({ discover: true });
  expect((await list()).data).toMatchObject([{ routes: null }]);
  const data = Array.from({ length: maxListedRoutes + 1 }, (_, number) => ({ id: `model-${number}` }));
  upstream.play((response) => sendJson(response, 200, JSON.stringify({ object: 'list', data })));
  await gateway.gateway.modelNames();
  const [found] = (await list()).data as { routes: { data: object[]; has_more: boolean } }[];
  expect([found?.routes.data.length, found?.routes.has_more]).toEqual([maxListedRoutes, true]);
});

test('a circuit opens, is tried again and closes in the list, with what was counted', async () => {
  const { list, upstream, gateway, clock } = await open();
  upstream.play((response) => sendJson(response, 500, '{}'));
  for (let time = 0; time < 5; time++) await (await gateway.post('/v1/chat/completions', body)).text();
  const openedAt = new Date(clock.now()).toISOString();
  expect((await list()).data).toMatchObject([
    {
      state: 'failing',
      availability: 'failing',
      circuit: { state: 'closed', failures_in_a_row: 0 },
      routes: {
        data: [
          {
            health: {
              availability: 'failing',
              paused_until: null,
              circuit: {
                state: 'open',
                only_key: expect.stringMatching(/^key_/) as string,
                open_since: openedAt,
                trial_at: new Date(clock.now() + 5_000).toISOString(),
                failures_in_a_row: 5,
                opens_at_failures: 5,
              },
            },
          },
        ],
      },
      last_ok_at: null,
      last_failed_at: openedAt,
      attempts: { error: 5 },
    },
  ]);
  clock.advance(5_000);
  expect((await list()).data).toMatchObject([
    { routes: { data: [{ health: { circuit: { state: 'half_open', open_since: openedAt } } }] } },
  ]);
  playProvider(upstream);
  await (await gateway.post('/v1/chat/completions', body)).text();
  const [closed] = (await list()).data;
  expect(closed).toMatchObject({
    state: 'ok',
    routes: { data: [{ health: { circuit: { state: 'closed', open_since: null, only_key: null } } }] },
    attempts: { error: 5, ok: 1 },
  });
});

test('the read-only token reads the list, and examines nothing', async () => {
  const { gateway, examine } = await open();
  const headers = { authorization: `Bearer ${readOnlyToken}` };
  expect((await fetch(`${gateway.adminUrl}/admin/upstreams`, { headers })).status).toBe(200);
  expect((await examine('local', {}, readOnlyToken)).status).toBe(403);
});

test('doctor reports as JSON, and check by check as events, without the path and the key', async () => {
  const { examine, upstream } = await open();
  playProvider(upstream);
  const response = await examine('local');
  const whole = await response.text();
  const report = JSON.parse(whole) as { upstreams: { url: string; checks: { id: string }[] }[] };
  expect(report).toMatchObject({ object: 'doctor', upstreams: [{ name: 'local', status: 'ok' }] });
  expect(report.upstreams[0]?.url).toBe(new URL(upstream.url).origin);
  expect(whole).not.toContain('sk-upstream-secret');
  const streamed = await examine('local', { headers: { accept: 'text/event-stream' } });
  const frames = parseFrames(await streamed.text());
  const ids = frames.slice(0, -1).map(({ data }) => (data as { id: string }).id);
  expect(ids.toSorted()).toEqual(report.upstreams[0]?.checks.map(({ id }) => id).toSorted());
  expect(frames.at(-1)?.data).toMatchObject({ object: 'doctor', upstreams: [{ status: 'ok' }] });
  upstream.play((refused) => sendJson(refused, 401, '{}'));
  const refused = await (await examine('local')).text();
  expect(refused).toContain(`POST ${new URL(upstream.url).origin}/…/chat/completions`);
});

test('an unknown upstream is a 404 with the nearest name, a wrong body a 400', async () => {
  const { examine } = await open();
  const unknown = await examine('locl');
  expect([unknown.status, await unknown.text()]).toEqual([404, expect.stringContaining("'local'")]);
  const json = { 'content-type': 'application/json' };
  expect((await examine('local', { headers: json, body: '{"modell":"x"}' })).status).toBe(400);
});

test('one run of an upstream at a time, which ends when its client leaves', async () => {
  const { examine, upstream } = await open();
  let asked = 0;
  upstream.play(() => void asked++);
  const leaving = new AbortController();
  const first = examine('local', { signal: leaving.signal }).catch(() => 'left');
  await eventually('the provider is asked', () => asked === 1);
  const second = await examine('local');
  expect([second.status, await second.text()]).toEqual([409, expect.stringContaining('doctor_is_running')]);
  leaving.abort();
  expect(await first).toBe('left');
  playProvider(upstream);
  await eventually('it can be examined again', async () => (await examine('local')).status === 200);
  expect(asked).toBe(1);
});

test('a run that takes more than five minutes is a 504', async () => {
  const { examine, upstream, clock } = await open({ timeouts: { firstByte: '10m', total: '10m' } });
  let asked = 0;
  upstream.play(() => void asked++);
  const late = examine('local');
  await eventually('the provider is asked', () => asked === 1);
  clock.advance(300_000);
  expect((await late).status).toBe(504);
});

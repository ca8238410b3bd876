import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const startMs = Date.UTC(2030, 0, 31, 12, 0, 0);
const body = { model: 'small', messages: [{ role: 'user', content: 'a question' }] };
const price = { input: '1', output: '2' };

let upstream: ScriptedUpstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
beforeEach(() => upstream.play(sayTexts(['one ', 'two'])));
afterAll(() => upstream.close());

async function start(clock: FakeClock, options: TestGatewayOptions = {}): Promise<TestGateway> {
  const stage = await startGateway({ clock, upstreamUrl: upstream.url, ...options });
  onTestFinished(() => stage.close());
  return stage;
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** Reads the history of the first minutes of a test. */
async function read(stage: TestGateway, query = `from=${iso(startMs)}`) {
  const { status, body: history } = await askAdmin(stage, 'GET', `/history?${query}`);
  expect(status).toBe(200);
  return history;
}

/** Has the open interval end, and waits until a history has as many points. */
async function untilPoints(stage: TestGateway, clock: FakeClock, points: number): Promise<void> {
  clock.advance(10_000);
  await eventually('the interval is stored', async () => {
    // The looks of the task, and then the time after which a point is shown.
    clock.advance(1_000);
    return (await read(stage)).points.length >= points;
  });
}

const ask = async (stage: TestGateway, more: object = {}): Promise<number> => {
  const response = await stage.post('/v1/chat/completions', { ...body, ...more });
  await response.text();
  return response.status;
};

const sumOf = (points: readonly { readonly requests: Readonly<Record<string, number>> }[], outcome: string) =>
  points.reduce((sum, { requests }) => sum + (requests[outcome] ?? 0), 0);

describe('GET /admin/history', () => {
  test('shows what ended, what it cost and why it was refused, whole and by upstream and model', async () => {
    const clock = createFakeClock(startMs);
    const stage = await start(clock, { price, otherModel: 'large', limits: { requestsPerMinute: 3 } });
    expect(await ask(stage, { stream: true })).toBe(200);
    expect(await ask(stage, { model: 'large' })).toBe(200);
    expect(await ask(stage, { model: 'none' })).toBe(404);
    expect(await ask(stage)).toBe(429);
    await untilPoints(stage, clock, 1);
    const history = await read(stage, `from=${iso(startMs)}&by=model,upstream`);
    expect(history).toMatchObject({ object: 'history', step_seconds: 10, by: ['upstream', 'model'] });
    const [point] = history.points;
    expect(point).toMatchObject({
      at: iso(startMs),
      processes: 1,
      running: 1,
      waiting: 0,
      upstream_states: {},
      requests: { completed: 2, refused: 2 },
      refusals: { model_not_found: 1, rate: 1 },
    });
    const records = await askAdmin(stage, 'GET', '/records');
    const charges = records.body.data.map(({ charge }: { charge: string }) => Number(charge));
    expect(Number(point.charge)).toBeCloseTo(charges[0] + charges[1], 9);
    expect(point.first_text_ms.p50).toBeTypeOf('number');
    expect(point.memory_bytes).toBeGreaterThan(1_000_000);
    const groups = point.groups.map((one: { upstream: string; model: string; requests: object }) => [
      one.upstream,
      one.model,
      one.requests,
    ]);
    expect(groups).toContainEqual(['local', 'small', { completed: 1 }]);
    expect(groups).toContainEqual(['local', 'large', { completed: 1 }]);
    expect(groups).toContainEqual([null, null, { refused: 2 }]);
    expect((await read(stage)).points[0].groups).toBeUndefined();
  });

  test('goes on over a restart, with the marks of both processes, and over a clock that is set back', async () => {
    const storage = join(makeTemporaryFolder(), 'textgate.db');
    const clock = createFakeClock(startMs);
    const first = await startGateway({ clock, storage, upstreamUrl: upstream.url });
    await ask(first);
    await ask(first);
    // Less than 10 s: the end of the process stores the open interval.
    await first.close();
    const later = createFakeClock(startMs + 30_000);
    const second = await start(later, { storage });
    await ask(second);
    await untilPoints(second, later, 2);
    const history = await read(second);
    expect(history.points.map(({ at }: { at: string }) => at).slice(0, 2)).toEqual([
      iso(startMs),
      iso(startMs + 30_000),
    ]);
    expect(sumOf(history.points, 'completed')).toBe(3);
    expect(history.marks.map(({ kind }: { kind: string }) => kind)).toEqual([
      'process_began',
      'process_ended',
      'process_began',
    ]);
    await second.close();
    const third = await start(createFakeClock(startMs - 3_600_000), { storage });
    await ask(third);
    await third.close();
    const fourth = await start(createFakeClock(startMs + 120_000), { storage });
    const both = await read(fourth, `from=${iso(startMs - 4_000_000)}`);
    expect(sumOf(both.points, 'completed')).toBe(4);
  });

  test('marks reloads of the config, and circuits that open and close, and shows the states between', async () => {
    const clock = createFakeClock(startMs);
    const config = {
      server: { port: 0 },
      admin: { port: 0, token: 'an-admin-token-for-tests' },
      storage: { url: 'sqlite::memory:' },
      upstreams: { local: { url: upstream.url, apiKey: 'sk-upstream-secret' } },
      models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true as const } },
    };
    const stage = await start(clock);
    upstream.play((response) => void response.writeHead(500).end());
    for (let times = 0; times < 6; times++) {
      const { secret } = await stage.gateway.createKey(`key ${times}`);
      await stage.post('/v1/chat/completions', body, { headers: { authorization: `Bearer ${secret}` } });
    }
    await untilPoints(stage, clock, 1);
    upstream.play(sayTexts(['one']));
    expect(await ask(stage, { stream: true })).toBe(200);
    stage.gateway.reload({
      ...config,
      upstreams: { local: { ...config.upstreams.local, url: upstream.url } },
    });
    await untilPoints(stage, clock, 2);
    const { marks, points } = await read(stage);
    expect(
      marks.map(({ kind, upstream: name, model }: Record<string, string>) => [kind, name, model]),
    ).toEqual([
      ['process_began', null, null],
      ['circuit_opened', 'local', 'tiny'],
      ['circuit_closed', 'local', 'tiny'],
      ['config_loaded', null, null],
    ]);
    expect(points[0]).toMatchObject({
      upstream_states: { local: 'half_open' },
      requests: { upstream_failed: 6 },
    });
    expect(points.at(-1).upstream_states).toEqual({});
  });

  test('is for read-only tokens, too, and for no one without a token', async () => {
    const readOnlyToken = 'a-read-only-token-for-tests';
    const stage = await start(createFakeClock(startMs), { admin: { readOnlyToken } });
    const { status } = await askAdmin({ ...stage, adminToken: readOnlyToken }, 'GET', '/history');
    expect(status).toBe(200);
    expect((await fetch(`${stage.adminUrl}/admin/history`)).status).toBe(401);
    expect((await askAdmin(stage, 'POST', '/history')).status).toBe(405);
  });

  test.each([
    ['from=yesterday', 'from', 'expected a time such as'],
    ['from=2030-02-30', 'from', 'expected a time such as'],
    ['to=-1', 'to', 'expected a time such as'],
    ['from=2030-01-31T12:00:00Z&to=2030-01-31T11:00:00Z', 'to', "expected a time after 'from'"],
    ['from=2030-01-31T12:00:00Z&to=2030-01-31T12:00:00Z', 'to', "expected a time after 'from'"],
    ['from=2031-01-01', 'to', "expected a time after 'from'"],
    ['from=2030-01-30&to=2030-01-31T00:00:01Z', 'from', "at most 24 h before 'to'"],
    ['from=0000-01-01&to=9999-12-31', 'from', '/admin/usage'],
    ['by=key', 'by', 'expected groups among upstream, model'],
    ['by=model,,upstream', 'by', 'expected groups among upstream, model'],
    ['form=2030-01-31', 'form', "Did you mean 'from'?"],
    ['from=2030-01-31&from=2030-01-30', 'from', 'Invalid'],
  ])('refuses a query and says what to send: %s', async (query, param, message) => {
    const stage = await start(createFakeClock(startMs));
    const { status, body: answer } = await askAdmin(stage, 'GET', `/history?${query}`);
    expect([status, answer.error?.param]).toEqual([400, param]);
    expect(answer.error.message).toContain(message);
  });

  test('has no points of times before and after it, and none of a future', async () => {
    const clock = createFakeClock(startMs);
    const stage = await start(clock);
    for (const [from, to] of [
      ['1970-01-01', '1970-01-02'],
      ['9999-12-30', '9999-12-31'],
    ])
      expect((await read(stage, `from=${from}&to=${to}`)).points).toEqual([]);
  });
});

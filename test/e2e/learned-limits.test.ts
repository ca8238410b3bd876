import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Allowance } from '../simulation/upstream-limiter/allowance.ts';
import type { AllowanceKind } from '../simulation/upstream-limiter/allowance.ts';
import { SimulatedUpstream } from '../simulation/upstream-limiter/upstream.ts';
import type { HeaderFamily } from '../simulation/upstream-limiter/upstream.ts';
import { eventually } from '../support/eventually.ts';
import { called, openWithLimiters, pass, responseOf } from '../support/limiters-behind-gateway.ts';
import type { LimitersScene } from '../support/limiters-behind-gateway.ts';
import { sayTexts, sendJson } from '../support/scripted-upstream.ts';

const minuteMs = 60_000;
const call = { input: 10, outputCap: 10, output: 10, headMs: 0, totalMs: 0 };

/** Has the upstream keep a limit of requests a minute by its own count, refuse what is beyond it, and report it. */
function limit(scene: LimitersScene, family: HeaderFamily, kind: AllowanceKind, perMinute: number) {
  const { clock, first } = scene;
  const requests = new Allowance(kind, perMinute, minuteMs, 12_345);
  const upstream = new SimulatedUpstream({ requests, family, tokenCount: 'reserved', clockMs: 5_000 });
  first.play((response, request) => {
    const nowMs = clock.monotonicMs();
    const isAccepted = upstream.arrive(call, nowMs);
    const headers = upstream.headers(call, !isAccepted, nowMs);
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (!isAccepted) return sendJson(response, 429, '{}');
    upstream.end(call, nowMs);
    return sayTexts(['one'])(response, request);
  });
  return upstream;
}

test.each<[string, HeaderFamily, AllowanceKind]>([
  ['the headers of OpenAI, which come back all the time', 'openai', 'bucket'],
  ['the headers of Anthropic, which come back all the time', 'anthropic', 'bucket'],
  ['plain headers of a window', 'plain', 'window'],
])('a burst of 100 requests is spread over the limits of %s', async (_what, family, kind) => {
  const scene = await openWithLimiters({ learnLimits: true, queueWait: '5m' });
  const { gateway, ask, clock, admin, metrics } = scene;
  const upstream = limit(scene, family, kind, 40);
  const answers = Array.from({ length: 100 }, (_each, at) => ask(`q${at}`, { stream: at % 2 === 0 }));
  let ended = 0;
  for (const answer of answers) void answer.ended.then(() => ended++);
  /** Nothing is under way: what has no answer yet waits for the upstream. */
  const settle = (): Promise<void> =>
    eventually('all others wait', async () => {
      const before = ended;
      const { data } = await gateway.inFlight();
      const waiting = data.filter(({ waits_for: what }) => what === 'upstream');
      return ended === before && waiting.length + ended === answers.length;
    });
  await settle();
  const { data } = (await admin('/in-flight')) as { data: { waits_for: string; position: number }[] };
  expect(data.length).toBeGreaterThanOrEqual(60);
  expect(new Set(data.map(({ waits_for: what }) => what))).toEqual(new Set(['upstream']));
  expect(await admin('/upstreams')).toMatchObject({
    data: [{ limiter: { learned: [{ name: 'requests', limit: 40, left: 0 }], waiting: data.length } }],
  });
  for (let steps = 0; ended < answers.length; steps++) {
    expect(steps).toBeLessThan(200);
    clock.advance(2_000);
    await settle();
  }
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(upstream.accepted).toBe(100);
  expect(upstream.refused).toBeLessThanOrEqual(1);
  const waits = answers.map(({ headers }) => Number(headers.get('x-textgate-queue-ms') ?? 0));
  expect(waits.filter((wait) => wait > 0)).toHaveLength(data.length);
  // 60 requests more than the limit at once take a minute and a half of a steady refill, or two more windows.
  expect(Math.max(...waits)).toBeGreaterThan(minuteMs);
  expect(Math.max(...waits)).toBeLessThan(2.5 * minuteMs);
  expect(await metrics()).toContain(`textgate_upstream_wait_seconds_count{upstream="u0",model=""} 100`);
});

test('what was learned of an upstream is forgotten when it gets another address', async () => {
  const scene = await openWithLimiters({ learnLimits: true, queueWait: '5m' });
  const { ask, first, admin, reload, waiting } = scene;
  const held = ask('held');
  await called(first, 1);
  const answer = ask('one');
  await called(first, 2);
  const headers = {
    'x-ratelimit-limit-requests': '10',
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-reset-requests': '60s',
  };
  sendJson(responseOf(first, 1), 429, '{}', { ...headers, 'retry-after': '30' });
  await waiting(1);
  const limiter = {
    learned: [{ limit: 10, left: 0 }],
    pauses: [{ model: 'tiny', paused_ms: 30_000 }],
    waiting: 1,
  };
  expect(await admin('/upstreams')).toMatchObject({ data: [{ limiter }] });
  reload({ learnLimits: true, queueWait: '4m' });
  expect(await admin('/upstreams')).toMatchObject({ data: [{ limiter }] });
  const url = first.url.replace('127.0.0.1', 'localhost');
  reload({ learnLimits: true, queueWait: '4m', url });
  expect(await admin('/upstreams')).toMatchObject({
    data: [{ limiter: { learned: [], max_in_flight: 4, pauses: [], waiting: 0, in_flight: 2 } }],
  });
  // Both still go to the address of before, whose answers teach nothing of the new one.
  await called(first, 3);
  sayWith(scene, 0, headers);
  sayWith(scene, 2, headers);
  await Promise.all([held.ended, answer.ended]);
  await pass(scene.clock, 500);
  expect(await admin('/upstreams')).toMatchObject({ data: [{ limiter: { learned: [], max_in_flight: 4 } }] });
  const next = ask('two');
  await called(first, 4);
  sayWith(scene, 3, {
    ...headers,
    'x-ratelimit-limit-requests': '20',
    'x-ratelimit-remaining-requests': '5',
  });
  await next.ended;
  await setImmediate();
  expect(await admin('/upstreams')).toMatchObject({
    data: [{ limiter: { learned: [{ limit: 20, left: 5 }] } }],
  });
});

/** Answers a call with some headers. */
function sayWith({ first }: LimitersScene, at: number, headers: Readonly<Record<string, string>>): void {
  const response = responseOf(first, at);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  first.calls[at]?.say();
}

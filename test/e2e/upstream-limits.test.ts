import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { called, openWithLimiters as open, pass, responseOf } from '../support/limiters-behind-gateway.ts';
import type { HeldUpstream, LimitersScene as Scene } from '../support/limiters-behind-gateway.ts';
import { chatFrames, cut, sendJson, sendStream } from '../support/scripted-upstream.ts';

test('an upstream gets no more requests at a time than it may have, and keys take turns', async () => {
  const { ask, key, first, waiting } = await open({ maxInFlight: 1 });
  const [greedy, other] = [await key(), await key()];
  const answers = [ask('a1', { key: greedy, stream: true })];
  await called(first, 1);
  for (const [at, [question, secret]] of [
    ['a2', greedy],
    ['a3', greedy],
    ['b1', other],
  ].entries()) {
    answers.push(ask(question ?? '', { key: secret ?? '', stream: at % 2 === 0 }));
    await waiting(at + 1);
  }
  for (let at = 0; at < 4; at++) {
    await called(first, at + 1);
    expect(first.running).toBe(1);
    first.calls[at]?.say();
  }
  await Promise.all(answers.map(({ ended }) => ended));
  expect(first.calls.map(({ asked }) => asked)).toEqual(['a1', 'b1', 'a2', 'a3']);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
});

test('a key of weight 2 is served twice as often as one of weight 1', async () => {
  const { ask, key, first, waiting } = await open({ maxInFlight: 1 });
  const [light, heavy] = [await key(1), await key(2)];
  const answers = [ask('first')];
  await called(first, 1);
  for (let at = 0; at < 8; at++) {
    answers.push(ask(at % 2 === 0 ? 'heavy' : 'light', { key: at % 2 === 0 ? heavy : light }));
    await waiting(at + 1);
  }
  for (let at = 0; at < 9; at++) {
    await called(first, at + 1);
    first.calls[at]?.say();
  }
  await Promise.all(answers.map(({ ended }) => ended));
  const served = first.calls.slice(1, 7).map(({ asked }) => asked);
  expect(served.filter((asked) => asked === 'heavy')).toHaveLength(4);
});

describe.each([true, false])('a permit (streamed: %s)', (stream) => {
  test.each<[string, (scene: Scene, left: AbortController) => unknown]>([
    ['its client disconnects', (_scene, left) => left.abort()],
    ['the answer is truncated', ({ first }) => cut(responseOf(first, 0), 'rst')],
    ['the upstream fails', ({ first }) => sendJson(responseOf(first, 0), 500, '{}')],
    [
      'the operator cancels the request',
      async ({ admin }) => {
        const { data } = (await admin('/in-flight')) as {
          data: { request_id: string; waits_for: unknown }[];
        };
        const running = data.find(({ waits_for: what }) => what === null);
        await admin(`/in-flight/${running?.request_id}/cancel`, 'POST');
      },
    ],
    ['the answer is complete', ({ first }) => first.calls[0]?.say()],
  ])('is free again when %s', async (_what, end) => {
    const scene = await open({ maxInFlight: 1 });
    const { ask, first, waiting } = scene;
    const left = new AbortController();
    const running = ask('one', { stream, signal: left.signal });
    running.ended.catch(() => {});
    await called(first, 1);
    const next = ask('two', { stream });
    await waiting(1);
    await end(scene, left);
    await called(first, 2);
    expect(first.running).toBe(1);
    first.calls[1]?.say();
    await next.ended;
    expect(next.status).toBe(200);
    expect(next.text).toContain('two');
  });
});

test('the permit of a client that left is kept while its answer is read on', async () => {
  const { ask, first, waiting } = await open({ maxInFlight: 1, onDisconnect: 'drain' });
  const left = new AbortController();
  const running = ask('one', { stream: true, signal: left.signal });
  running.ended.catch(() => {});
  await called(first, 1);
  const frames = chatFrames(['one ', 'two']);
  sendStream(responseOf(first, 0), frames.slice(0, 2));
  await eventually('text has come', () => running.text.includes('one '));
  const next = ask('two');
  await waiting(1);
  left.abort();
  for (let turn = 0; turn < 50; turn++) await setImmediate();
  expect(first.calls).toHaveLength(1);
  first.calls[0]?.response.end(frames.slice(2).join(''));
  await called(first, 2);
  first.calls[1]?.say();
  await next.ended;
  expect(next.status).toBe(200);
});

test('the permit of an answer that is dropped is kept until its connection is closed', async () => {
  const { ask, first, waiting, clock, key } = await open({ maxInFlight: 1 });
  const failing = ask('one');
  await called(first, 1);
  const next = ask('two');
  await waiting(1);
  await key();
  const timers = clock.scheduled;
  responseOf(first, 0).writeHead(500, { 'content-length': '10' }).write('{');
  // Without its deadline, no time that passes would end it.
  await eventually('the answer has begun, and has its deadline', () => clock.scheduled > timers);
  for (let turn = 0; turn < 50; turn++) await setImmediate();
  await pass(clock, 500);
  await failing.ended;
  expect(failing.status).toBe(502);
  expect(first.calls).toHaveLength(1);
  await pass(clock, 2_000);
  await called(first, 2);
  first.calls[1]?.say();
  await next.ended;
  expect(next.status).toBe(200);
});

test('a request that left while it waited is never sent', async () => {
  const { ask, first, waiting } = await open({ maxInFlight: 1 });
  const running = ask('one');
  await called(first, 1);
  const left = new AbortController();
  const gone = ask('two', { signal: left.signal });
  gone.ended.catch(() => {});
  await waiting(1);
  const next = ask('three');
  await waiting(2);
  left.abort();
  await waiting(1);
  first.calls[0]?.say();
  await called(first, 2);
  first.calls[1]?.say();
  await Promise.all([running.ended, next.ended]);
  expect(first.calls.map(({ asked }) => asked)).toEqual(['one', 'three']);
});

/** Counts refusals by the upstreams whose queues refused. */
const refusals = 'textgate_upstream_queue_refusals_total';

describe('a request that gets no permit', () => {
  test('is refused at once when the queue is full, without a record, and is told how many wait', async () => {
    const { ask, first, waiting, admin, metrics } = await open({ maxInFlight: 1, queue: 1 });
    const running = ask('one');
    await called(first, 1);
    const next = ask('two');
    await waiting(1);
    // An alert on the increase needs the series before the first refusal.
    expect(await metrics()).toContain(`${refusals}{upstream="u0",model="",reason="full"} 0`);
    const refused = ask('three');
    await refused.ended;
    expect(refused.status).toBe(429);
    const { error } = JSON.parse(refused.text) as { error: { message: string; limit: object } };
    expect(error).toMatchObject({
      code: 'upstream_busy',
      type: 'rate_limit_error',
      limit: { source: 'upstream', kind: 'queue', limit: null, waiting: 1 },
    });
    expect(error.message).toMatch(/no more requests may wait for it: 1 request waits\. Retry in \d+ s/);
    expect(refused.text).not.toMatch(/u0|127\.0\.0\.1/);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(refused.headers.get('x-should-retry')).toBeNull();
    expect(await metrics()).toContain(`${refusals}{upstream="u0",model="",reason="full"} 1`);
    first.calls[0]?.say();
    await called(first, 2);
    first.calls[1]?.say();
    await Promise.all([running.ended, next.ended]);
    expect(((await admin('/records')) as { data: object[] }).data).toHaveLength(2);
  });

  test.each([true, false])('is refused when it has waited too long (streamed: %s)', async (stream) => {
    const { ask, first, waiting, clock, metrics } = await open({ maxInFlight: 1, queueWait: '20s' });
    ask('one');
    await called(first, 1);
    const late = ask('two', { stream });
    await waiting(1);
    await pass(clock, 20_000);
    await late.ended;
    expect(late.status).toBe(429);
    expect(JSON.parse(late.text)).toMatchObject({
      error: {
        code: 'upstream_busy',
        message: expect.stringContaining('waited 20 s') as string,
        limit: { waiting: 0 },
      },
    });
    expect(late.headers.get('x-textgate-queue-ms')).toBe('20000');
    const shown = await metrics();
    expect(shown).toContain(`${refusals}{upstream="u0",model="",reason="timed_out"} 1`);
    expect(shown).toContain('textgate_requests_waiting{reason="upstream"} 0');
    expect(shown).toContain('textgate_wait_seconds_count{reason="upstream"} 1');
  });

  test('is refused as the gateway begins to drain, while the running request completes', async () => {
    const { ask, first, waiting, gateway, clock } = await open({ maxInFlight: 1 });
    const running = ask('one');
    await called(first, 1);
    const next = ask('two');
    await waiting(1);
    await pass(clock, 2_000);
    const closed = gateway.close();
    await next.ended;
    expect(next.status).toBe(503);
    expect(next.headers.get('x-textgate-queue-ms')).toBe('2000');
    expect(JSON.parse(next.text)).toMatchObject({ error: { code: 'draining' } });
    first.calls[0]?.say();
    await running.ended;
    expect(running.status).toBe(200);
    await closed;
  });
});

test('a reload keeps running and waiting requests, and its limits hold for those that wait', async () => {
  const { ask, first, waiting, reload } = await open({ maxInFlight: 1 });
  const answers = [ask('one')];
  await called(first, 1);
  for (const [at, question] of ['two', 'three', 'four'].entries()) {
    answers.push(ask(question));
    await waiting(at + 1);
  }
  reload({ maxInFlight: 2 });
  await called(first, 2);
  await waiting(2);
  expect(first.running).toBe(2);
  reload({});
  await called(first, 4);
  for (const call of first.calls) call.say();
  await Promise.all(answers.map(({ ended }) => ended));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
});

describe('a model with two routes', () => {
  test('uses the second one while the first one has no permit free, and nothing waits while one of them has', async () => {
    const { ask, upstreams, first, waiting } = await open({ maxInFlight: 1 }, { maxInFlight: 1 });
    const [, second] = upstreams as [HeldUpstream, HeldUpstream];
    const answers = [ask('one')];
    await called(first, 1);
    answers.push(ask('two'));
    await called(second, 1);
    answers.push(ask('three'));
    await waiting(1);
    second.calls[0]?.say();
    await called(second, 2);
    for (const { calls } of upstreams) calls.at(-1)?.say();
    await Promise.all(answers.map(({ ended }) => ended));
    expect(second.calls.map(({ asked }) => asked)).toEqual(['two', 'three']);
  });

  test('counts a refusal at each upstream whose queue refused', async () => {
    const full = { maxInFlight: 1, queueWait: '0s' };
    const { ask, upstreams, first, metrics } = await open(full, full);
    const [, second] = upstreams as [HeldUpstream, HeldUpstream];
    const answers = [ask('one'), ask('two')];
    await called(first, 1);
    await called(second, 1);
    const refused = ask('three');
    await refused.ended;
    expect(refused.status).toBe(429);
    expect(refused.text).not.toMatch(/u0|u1/);
    const shown = await metrics();
    expect(
      shown
        .split('\n')
        .filter((line) => line.startsWith(refusals))
        .toSorted(),
    ).toEqual([
      `${refusals}{upstream="u0",model="",reason="full"} 1`,
      `${refusals}{upstream="u0",model="",reason="timed_out"} 0`,
      `${refusals}{upstream="u1",model="",reason="full"} 1`,
      `${refusals}{upstream="u1",model="",reason="timed_out"} 0`,
    ]);
    for (const { calls } of upstreams) calls[0]?.say();
    await Promise.all(answers.map(({ ended }) => ended));
  });

  test('never waits if one of them has no limits', async () => {
    const { ask, upstreams, first } = await open({ maxInFlight: 1 }, {});
    const [, second] = upstreams as [HeldUpstream, HeldUpstream];
    const answers = ['one', 'two', 'three'].map((question) => ask(question));
    await called(first, 1);
    await called(second, 2);
    for (const { calls } of upstreams) for (const call of calls) call.say();
    await Promise.all(answers.map(({ ended }) => ended));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  test('tries one that fails where the queue of the other one is full', async () => {
    const { ask, upstreams, first } = await open({ maxInFlight: 1, queueWait: '0s' }, {});
    const [, second] = upstreams as [HeldUpstream, HeldUpstream];
    const running = ask('running');
    await called(first, 1);
    for (let failure = 1; failure <= 5; failure++) {
      const failed = ask('fails');
      await called(second, failure);
      sendJson(responseOf(second, failure - 1), 500, '{}');
      await failed.ended;
    }
    const last = ask('the last resort');
    await called(second, 6);
    for (const { calls } of upstreams) calls.at(-1)?.say();
    await Promise.all([running.ended, last.ended]);
    expect(last.status).toBe(200);
  });

  test('goes on at a route that paused when its wait began, as soon as that works again', async () => {
    const { ask, clock, upstreams, waiting } = await open({ maxInFlight: 1 }, {});
    const [limited, other] = upstreams as [HeldUpstream, HeldUpstream];
    ask('a');
    await called(limited, 1);
    ask('b');
    await called(other, 1);
    sendJson(responseOf(other, 0), 429, '{}', { 'retry-after': '5' });
    await waiting(1);
    const late = ask('c');
    await waiting(2);
    await pass(clock, 4_500);
    expect(other.calls).toHaveLength(1);
    await pass(clock, 1_000);
    await called(other, 2);
    other.calls[1]?.say();
    await late.ended;
    expect([late.status, other.calls[1]?.asked]).toEqual([200, 'c']);
    // It is in no queue any more.
    await waiting(1);
    limited.calls[0]?.say();
    await called(limited, 2);
    expect(limited.calls[1]?.asked).toBe('b');
  });

  test('has its permit at the route that is tried, and releases that of the one that failed', async () => {
    const { ask, upstreams, first, admin } = await open({ maxInFlight: 1 }, { maxInFlight: 1 });
    const [, second] = upstreams as [HeldUpstream, HeldUpstream];
    const answer = ask('one');
    await called(first, 1);
    sendJson(responseOf(first, 0), 500, '{}');
    await called(second, 1);
    const { data } = (await admin('/upstreams')) as { data: { limiter: { in_flight: number } }[] };
    expect(data.map(({ limiter }) => limiter.in_flight)).toEqual([0, 1]);
    second.calls[0]?.say();
    await answer.ended;
    expect(answer.status).toBe(200);
  });
});

describe('an upstream that answers 429 with retry-after', () => {
  test('is asked again after the pause, which takes nothing of the time of the call', async () => {
    const { ask, first, waiting, clock, admin, key } = await open({
      maxInFlight: 4,
      timeouts: { total: '3s', firstByte: '3s', idle: '3s' },
    });
    const answer = ask('one', { stream: true });
    await called(first, 1);
    sendJson(responseOf(first, 0), 429, '{}', { 'retry-after': '10' });
    await waiting(1);
    // Its record is begun before a key that is made later: with the time set ahead before that, it would be refused as late.
    await key();
    await setImmediate();
    await pass(clock, 9_000);
    expect(first.calls).toHaveLength(1);
    await pass(clock, 2_000);
    await called(first, 2);
    first.calls[1]?.say();
    await answer.ended;
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('[DONE]');
    expect(answer.headers.get('x-textgate-queue-ms')).toBe('10000');
    const { data } = (await admin('/records')) as { data: { attempts: { result: string }[] }[] };
    expect(data[0]?.attempts.map(({ result }) => result)).toEqual(['rate_limited', 'ok']);
  });

  test('is not waited for when the pause is longer than a request may wait', async () => {
    const { ask, first } = await open({ maxInFlight: 4, queueWait: '5s' });
    const answer = ask('one');
    await called(first, 1);
    sendJson(responseOf(first, 0), 429, '{}', { 'retry-after': '10' });
    await answer.ended;
    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toBe('10');
    expect(JSON.parse(answer.text)).toMatchObject({ error: { code: 'upstream_rate_limited' } });
    const next = ask('two');
    await next.ended;
    expect(JSON.parse(next.text)).toMatchObject({ error: { code: 'upstream_busy' } });
    expect(first.calls).toHaveLength(1);
  });

  test('fails the request at once without limits, as ever', async () => {
    const { ask, first } = await open({});
    const answer = ask('one');
    await called(first, 1);
    sendJson(responseOf(first, 0), 429, '{}', { 'retry-after': '1' });
    await answer.ended;
    expect(answer.status).toBe(429);
    expect(first.calls).toHaveLength(1);
  });
});

test('a path that is passed on acquires permits, too, and releases them', async () => {
  const { ask, first, waiting } = await open({ maxInFlight: 1 });
  const passed = ask('x', { path: '/tokenize' });
  await called(first, 1);
  const answer = ask('one');
  await waiting(1);
  sendJson(responseOf(first, 0), 200, '{}');
  await called(first, 2);
  const again = ask('x', { path: '/tokenize' });
  await waiting(1);
  first.calls[1]?.say();
  await called(first, 3);
  sendJson(responseOf(first, 2), 200, '{}');
  await Promise.all([passed, answer, again].map(({ ended }) => ended));
  expect([passed, answer, again].map(({ status }) => status)).toEqual([200, 200, 200]);
});

test('a path that is passed on is refused when the queue is full, and nothing is sent', async () => {
  const { ask, first } = await open({ maxInFlight: 1, queue: 0 });
  const running = ask('one');
  await called(first, 1);
  const refused = ask('x', { path: '/tokenize' });
  await refused.ended;
  expect(refused.status).toBe(429);
  expect(JSON.parse(refused.text)).toMatchObject({ error: { code: 'upstream_busy', limit: { waiting: 0 } } });
  first.calls[0]?.say();
  await running.ended;
  expect(first.calls).toHaveLength(1);
});

test('what waits is shown with its position in the queue, and how the limits are used', async () => {
  const { ask, first, waiting, admin, metrics } = await open({ maxInFlight: 1, requestsPerMinute: 10 });
  const answers = [ask('one', { stream: true })];
  await called(first, 1);
  answers.push(ask('two'));
  await waiting(1);
  answers.push(ask('three'));
  await waiting(2);
  const { data } = (await admin('/in-flight')) as { data: object[] };
  const line = { waits_for: 'upstream', waits_at: ['u0'], model: 'small', upstream: null };
  expect(data).toMatchObject([
    { waits_for: null, waits_at: null, position: null, expected_wait_ms: null, upstream: 'u0' },
    { ...line, position: 1, expected_wait_ms: expect.any(Number) as number },
    { ...line, position: 2 },
  ]);
  expect(await admin('/status')).toMatchObject({
    in_flight: { running: 1, waiting: 2, data: [{}, { waits_for: 'upstream', position: 1 }, {}] },
    upstreams: { u0: { running: 1, waiting: 2 } },
  });
  expect(((await admin('/upstreams')) as { data: object[] }).data).toMatchObject([
    {
      limiter: { in_flight: 1, max_in_flight: 1, starts_left: 9, tokens_left: null, learned: [], waiting: 2 },
    },
  ]);
  const shown = await metrics();
  expect(shown).toContain('textgate_upstream_in_flight{upstream="u0",model=""} 1');
  expect(shown).toContain('textgate_upstream_in_flight_limit{upstream="u0",model=""} 1');
  expect(shown).toContain('textgate_upstream_waiting{upstream="u0",model=""} 2');
  for (let at = 0; at < 3; at++) {
    await called(first, at + 1);
    first.calls[at]?.say();
  }
  await Promise.all(answers.map(({ ended }) => ended));
  expect(await metrics()).toContain('textgate_upstream_wait_seconds_count{upstream="u0",model=""} 3');
});

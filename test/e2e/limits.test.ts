import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const messages = [{ role: 'user' as const, content: 'count' }];
const streaming = { model: 'small', messages, stream: true };

let clock: FakeClock;
let upstream: ScriptedUpstream;
let gateway: TestGateway;
const open: AbortController[] = [];
beforeEach(async () => {
  clock = createFakeClock();
  upstream = await startUpstream();
  gateway = await startGateway({ upstreamUrl: upstream.url, clock });
});
afterEach(async () => {
  for (const stream of open.splice(0)) stream.abort();
  await gateway.close();
  await upstream.close();
});

/** Starts a stream that stays open; returns a function that disconnects its client. */
async function openStream(key = gateway.key): Promise<() => void> {
  const leaving = new AbortController();
  open.push(leaving);
  const headers = { authorization: `Bearer ${key}` };
  const response = await gateway.post('/v1/chat/completions', streaming, { signal: leaving.signal, headers });
  expect(response.status).toBe(200);
  await response.body?.getReader().read();
  return () => leaving.abort();
}

describe('a key with two requests at once', () => {
  test('gets 429 with its cause for a third request, and a free slot when a client disconnects', async () => {
    upstream.play((response) => void sendStream(response, chatFrames(['a', 'b']).slice(0, 2)));
    const leave = await openStream();
    await openStream();

    const third = await gateway.post('/v1/responses', { model: 'small', input: 'x' });
    expect(third.status).toBe(429);
    expect(third.headers.get('retry-after')).toBe('1');
    expect(third.headers.get('retry-after-ms')).toBe('1000');
    expect(third.headers.get('x-textgate-concurrency-limit')).toBe('2');
    expect(third.headers.get('x-textgate-concurrency-in-flight')).toBe('2');
    expect(await third.json()).toEqual({
      error: {
        message: expect.stringContaining('2 requests in progress') as string,
        type: 'rate_limit_error',
        param: null,
        code: 'concurrency_limit_exceeded',
        limit: { source: 'key', kind: 'concurrency', limit: 2, in_flight: 2, retry_after_ms: 1_000 },
      },
    });

    upstream.play(sayTexts(['free']));
    leave();
    await eventually('the slot is free', async () => {
      const next = await gateway.post('/v1/chat/completions', { ...streaming, stream: false });
      return next.status === 200;
    });
  });

  test('does not use up the slots of another key', async () => {
    upstream.play((response) => void sendStream(response, chatFrames(['a', 'b']).slice(0, 2)));
    await openStream();
    await openStream();
    const { secret } = await gateway.gateway.createKey('other', { concurrency: 1 });
    await openStream(secret);
    const refused = await gateway.post('/v1/chat/completions', streaming, {
      headers: { authorization: `Bearer ${secret}` },
    });
    expect(await refused.json()).toMatchObject({ error: { limit: { limit: 1, in_flight: 1 } } });
  });

  test('has a free slot before its client reads the end of the answer', async () => {
    upstream.play(sayTexts(['x']));
    const { secret } = await gateway.gateway.createKey('one at a time', { concurrency: 1 });
    const headers = { authorization: `Bearer ${secret}` };
    for (let round = 0; round < 20; round++) {
      const response = await gateway.post(
        '/v1/chat/completions',
        { ...streaming, stream: round % 2 === 0 },
        { headers },
      );
      expect(response.status).toBe(200);
      await response.text();
    }
  });

  test('keeps no slot for a refused request, for any reason of the refusal', async () => {
    upstream.play(sayTexts(['x']));
    for (const body of ['{', '{}', '{"model":"none","messages":[{"role":"user","content":"x"}]}']) {
      for (let round = 0; round < 3; round++)
        expect((await gateway.post('/v1/chat/completions', body)).ok).toBe(false);
    }
    expect((await gateway.post('/v1/chat/completions', { model: 'small', messages })).status).toBe(200);
  });
});

/** The gauge of the requests that wait for a slot. */
const gauge = 'textgate_requests_waiting{reason="slot"}';

async function metricsOf({ adminUrl }: TestGateway): Promise<string> {
  return (await fetch(`${adminUrl}/metrics`)).text();
}

describe('a request that may wait for a slot', () => {
  test('runs when a slot is free, instead of being refused', async () => {
    const patient = await startGateway({
      upstreamUrl: upstream.url,
      clock,
      limits: { concurrency: 1, requestsPerMinute: 100, queueWait: '5s' },
    });
    const first = Promise.withResolvers<ServerResponse>();
    upstream.play((response) => first.resolve(sendStream(response, chatFrames(['one']).slice(0, 2))));
    const running = readLive(patient.post('/v1/chat/completions', streaming));
    const sending = await first.promise;
    upstream.play(sayTexts(['x']));
    const waiting = patient.post('/v1/chat/completions', { model: 'small', messages });
    await eventually('a request waits', async () => (await metricsOf(patient)).includes(`${gauge} 1\n`));
    clock.advance(1_500);
    sending.end(chatFrames([]).slice(1).join(''));
    const answer = await waiting;
    expect([answer.status, answer.headers.get('x-textgate-queue-ms')]).toEqual([200, '1500']);
    await running.ended;
    expect(running.headers.get('x-textgate-queue-ms')).toBeNull();
    const metrics = await metricsOf(patient);
    expect(metrics).toContain(`${gauge} 0\n`);
    expect(metrics).toContain('textgate_wait_seconds_sum{reason="slot"} 1.5\n');
    await patient.close();
  });
});

describe('the limit of requests per minute', () => {
  test('allows all of them at once; the next request gets the time to retry, and is accepted then', async () => {
    upstream.play(sayTexts(['x']));
    const { secret } = await gateway.gateway.createKey('slow', { requestsPerMinute: 3 });
    const headers = { authorization: `Bearer ${secret}` };
    const ask = () => gateway.post('/v1/chat/completions', { model: 'small', messages }, { headers });

    const remaining: (string | null)[] = [];
    for (let round = 0; round < 3; round++) {
      const response = await ask();
      expect(response.status).toBe(200);
      remaining.push(response.headers.get('x-ratelimit-remaining-requests'));
      await response.text();
      clock.advance(1_000);
    }
    expect(remaining).toEqual(['2', '1', '0']);

    const refused = await ask();
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('57');
    expect(refused.headers.get('x-ratelimit-limit-requests')).toBe('3');
    expect(refused.headers.get('x-ratelimit-reset-requests')).toBe('57s');
    expect(await refused.json()).toMatchObject({
      error: {
        code: 'rate_limit_exceeded',
        limit: { source: 'key', kind: 'rate', limit: 3, retry_after_ms: 57_000 },
      },
    });

    clock.advance(57_000);
    expect((await ask()).status).toBe(200);
    expect((await ask()).status).toBe(429);
  });

  test('counts a request that is refused for its body or model, but none without a valid key', async () => {
    const remainingAfter = async (body: unknown, headers: Record<string, string> = {}) => {
      const response = await gateway.post('/v1/chat/completions', body, { headers });
      await response.text();
      return [response.status, response.headers.get('x-ratelimit-remaining-requests')];
    };
    expect(await remainingAfter('{')).toEqual([400, '59']);
    expect(await remainingAfter({ model: 'nothing', messages: [{ role: 'user', content: 'x' }] })).toEqual([
      404,
      '58',
    ]);
    expect(await remainingAfter('{}', { authorization: 'Bearer wrong' })).toEqual([401, null]);
    expect(await remainingAfter('x'.repeat(2_000_000))).toEqual([413, '57']);
    expect(await remainingAfter('{}', { 'content-type': 'text/plain' })).toEqual([415, '56']);
  });

  test('does not count requests for the models', async () => {
    const { secret } = await gateway.gateway.createKey('one', { requestsPerMinute: 1 });
    for (let round = 0; round < 5; round++) {
      const response = await fetch(`${gateway.url}/v1/models`, {
        headers: { authorization: `Bearer ${secret}` },
      });
      expect(response.status).toBe(200);
    }
  });
});

describe('the timeouts of an upstream', () => {
  test('end a call without a first byte', async () => {
    upstream.play(() => {});
    const asked = readLive(gateway.post('/v1/chat/completions', streaming));
    await eventually('the upstream is asked', () => upstream.seen.length === 1);
    await gateway.recorded();
    clock.advance(120_000);
    await asked.ended;
    expect(asked.text).toMatch(/^(: keep-alive\n)+data: \{"error":\{.*"code":"upstream_timeout".*\n\n$/);
    expect(asked.broken).toBe(true);
    await eventually('the upstream call is aborted', () => upstream.aborted === 1);
  });

  test.each([
    ['a stream that falls silent', 1, 60_000],
    ['a stream that never ends, though it is never silent', 20, 30_000],
  ])('end %s', async (_name, rounds, stepMs) => {
    const sending = Promise.withResolvers<ServerResponse>();
    upstream.play((response) => sending.resolve(sendStream(response, chatFrames(['first']).slice(0, 2))));
    const answer = readLive(gateway.post('/v1/chat/completions', streaming));
    await eventually('text has arrived', () => answer.text.includes('first'));
    for (let round = 1; round < rounds; round++) {
      clock.advance(stepMs);
      (await sending.promise).write(chatFrames([`more ${round}`])[1]);
      await eventually('more text has arrived', () => answer.text.includes(`more ${round}`));
    }
    clock.advance(stepMs);
    await answer.ended;
    expect(answer.text).toContain('"code":"upstream_timeout"');
    expect(answer.text).not.toContain('[DONE]');
    expect(answer.broken).toBe(true);
    await eventually('the upstream call is aborted', () => upstream.aborted === 1);
  });

  test('let a whole answer take longer than the first byte of a stream', async () => {
    const asked = gateway.post('/v1/chat/completions', { model: 'small', messages });
    const release = Promise.withResolvers<void>();
    upstream.play(async (response, request) => {
      await release.promise;
      await sayTexts(['late'])(response, request);
    });
    await eventually('the upstream is asked', () => upstream.seen.length === 1);
    await gateway.recorded();
    clock.advance(300_000);
    release.resolve();
    expect((await asked).status).toBe(200);
  });
});

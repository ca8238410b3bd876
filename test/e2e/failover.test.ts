import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import type { Clock } from '../../src/domain/ports/clock.ts';
import { askAdmin } from '../support/admin-client.ts';
import { readAnswer } from '../support/client-answer.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const frames = chatFrames(['one ', 'two']);
const [opening = ''] = frames;
const json = { 'content-type': 'application/json' };
const sse = { 'content-type': 'text/event-stream' };
const status =
  (code: number, headers = {}) =>
  (response: ServerResponse): void =>
    void response.writeHead(code, { ...json, ...headers }).end('{"error":{"message":"no"}}');

/** The failures of an upstream before its first text (rows 32 to 51), with the recorded result of the attempt. */
const faults: Readonly<Record<string, readonly [(response: ServerResponse) => void, string, string]>> = {
  'closes the connection': [(response) => void response.destroy(), 'unanswered', 'upstream_unavailable'],
  'says nothing': [() => {}, 'timeout', 'upstream_timeout'],
  'stalls after its head': [
    (response) => response.writeHead(200, sse).flushHeaders(),
    'timeout',
    'upstream_timeout',
  ],
  'stalls before its first word': [
    (response) => sendStream(response, [opening]),
    'timeout',
    'upstream_timeout',
  ],
  'resets before its first word': [
    (response) => {
      sendStream(response, [opening]);
      setImmediate(() => response.socket?.resetAndDestroy());
    },
    'truncated',
    'upstream_truncated',
  ],
  'ends before its first word': [
    (response) => void response.writeHead(200, sse).end(opening),
    'truncated',
    'upstream_truncated',
  ],
  'sends half a body': [
    (response) => {
      response.writeHead(200, { ...json, 'content-length': '1000' }).write('{"choices":[');
      setImmediate(() => response.destroy());
    },
    'truncated',
    'upstream_truncated',
  ],
  'answers 500': [status(500), 'error', 'upstream_error'],
  'answers 503, and never ends the body': [
    (response) => void response.writeHead(503, { ...json, 'content-length': '10' }).write('{'),
    'error',
    'overloaded',
  ],
  'sends a whole body that is not whole': [
    (response) =>
      void response
        .writeHead(200, json)
        .end('{"choices":[{"index":0,"message":{"content":"one "},"finish_reason":null}]}'),
    'truncated',
    'upstream_truncated',
  ],
  'answers 502 with a page': [
    (response) => void response.writeHead(502, { 'content-type': 'text/html' }).end('<html>'),
    'error',
    'upstream_error',
  ],
  'answers 401': [status(401), 'auth', 'upstream_auth'],
  'answers 404': [status(404), 'unserved', 'upstream_error'],
  'answers 429': [status(429, { 'retry-after': '1' }), 'rate_limited', 'upstream_rate_limited'],
  'answers 529': [status(529), 'overloaded', 'overloaded'],
  'redirects elsewhere': [status(302, { location: 'http://127.0.0.1:1/' }), 'unserved', 'upstream_error'],
  'sends a page with 200': [
    (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    'invalid',
    'upstream_invalid',
  ],
  'sends an empty body': [
    (response) => void response.writeHead(200, json).end(),
    'invalid',
    'upstream_invalid',
  ],
  'sends an error with 200': [
    (response) => void response.writeHead(200, json).end('{"error":{"message":"no","code":500}}'),
    'error',
    'upstream_error',
  ],
  'sends compressed bytes': [
    (response) => void response.writeHead(200, json).end(Buffer.from([0x1f, 0x8b, 8, 0, 0, 0])),
    'invalid',
    'upstream_invalid',
  ],
};

let upstreams: readonly ScriptedUpstream[];
let gateway: TestGateway;
const asked = (): number[] => upstreams.map(({ seen }) => seen.length);
const attemptsOfLast = async (): Promise<string[]> => {
  const { body } = await askAdmin(gateway, 'GET', '/records?limit=1');
  return body.data[0].attempts.map(({ upstream, result }: Record<string, string>) => `${upstream} ${result}`);
};
const metric = async (line: string): Promise<number> => {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  return Number(
    text
      .split('\n')
      .find((found) => found.startsWith(line))
      ?.split(' ')
      .at(-1),
  );
};

/** The longest silence of an upstream, in milliseconds. */
const silenceMs = 200;

async function start(
  weights: readonly (number | undefined)[] = [],
  clock: Clock = systemClock,
): Promise<TestGateway> {
  const timeouts = { firstByte: `${silenceMs}ms`, idle: `${silenceMs}ms`, total: '4s' };
  const entries = upstreams.map(({ url }, index) => [String.fromCodePoint(97 + index), { url, timeouts }]);
  return startGateway({
    clock,
    limits: { requestsPerMinute: 100_000, concurrency: 100 },
    upstreams: Object.fromEntries(entries),
    routes: upstreams.map((_, index) => {
      const weight = weights[index];
      return { upstream: String.fromCodePoint(97 + index), model: 'm', ...(weight && { weight }) };
    }),
  });
}

beforeAll(async () => {
  upstreams = await Promise.all([startUpstream(), startUpstream(), startUpstream()]);
});
afterAll(() => Promise.all(upstreams.map((upstream) => upstream.close())));
beforeEach(async () => {
  gateway = await start();
  for (const upstream of upstreams) {
    upstream.seen.length = 0;
    upstream.play(sayTexts(['one ', 'two']));
  }
});
afterEach(() => gateway.close());

describe.each(Object.entries(faults))('an upstream that %s', (name, [script, result, code]) => {
  const modes = [true, false];
  let clock: FakeClock;
  /** Silence is too long at once, and no other fault is judged by a time. */
  const fail = (response: ServerResponse): void => {
    script(response);
    if (result === 'timeout') setImmediate(() => clock.advance(silenceMs));
  };
  const ask = (protocol: 'chat' | 'responses', stream: boolean) => {
    // The last record is the newest.
    clock.advance(1);
    return readAnswer(gateway, protocol, stream);
  };

  beforeEach(async () => {
    await gateway.close();
    clock = createFakeClock();
    // How long the rest of an error is waited for begins with its head, which a test does not see arrive.
    gateway = await start([], name.includes('never') ? systemClock : clock);
  });

  test('is invisible to the client while another upstream works', async () => {
    for (const protocol of ['chat', 'responses'] as const)
      for (const stream of modes)
        for (const bad of [1, 2]) {
          for (const upstream of upstreams.slice(0, bad)) upstream.play(fail);
          const answer = await ask(protocol, stream);
          expect(answer).toMatchObject({ ending: 'stop', text: 'one two', usage: [11, 7] });
        }
    expect(await attemptsOfLast()).toContainEqual('c ok');
  });

  test('becomes one accurate error when no other upstream works', async () => {
    for (const upstream of upstreams) upstream.play(fail);
    for (const stream of modes)
      expect(await ask('chat', stream)).toMatchObject({ ending: 'failure', code, text: '' });
    const attempts = await attemptsOfLast();
    expect(
      attempts.filter((made) => !made.endsWith(' stale')).every((made) => made.endsWith(` ${result}`)),
    ).toBe(true);
  });
});

describe('an answer that has begun', () => {
  test('is not retried when it breaks off', async () => {
    upstreams[0]?.play((response) => {
      sendStream(response, frames.slice(0, 2));
      setTimeout(() => response.destroy(), 20);
    });
    expect(await readAnswer(gateway, 'chat', true)).toMatchObject({
      ending: 'failure',
      text: 'one ',
      code: 'upstream_truncated',
    });
    expect(asked()).toEqual([1, 0, 0]);
    expect(await attemptsOfLast()).toEqual(['a truncated']);
  });
});

describe('an invalid request', () => {
  test('is refused by the first upstream, and not sent to another', async () => {
    upstreams[0]?.play(status(400));
    expect(await readAnswer(gateway, 'chat', false)).toMatchObject({ code: 'invalid_value' });
    expect(asked()).toEqual([1, 0, 0]);
  });
});

describe('an upstream that fails repeatedly', () => {
  test('gets no more requests after five failures, which /metrics and /readyz show', async () => {
    upstreams[0]?.play(status(500));
    for (let time = 0; time < 8; time++) await readAnswer(gateway, 'chat', false);
    expect(asked()).toEqual([5, 8, 0]);
    expect(await metric('textgate_upstream_state{upstream="a"}')).toBe(0);
    expect(await metric('textgate_upstream_state{upstream="b"}')).toBe(2);
    expect(await metric('textgate_upstream_attempts_total{upstream="a",result="error"}')).toBe(5);
    expect(await metric('textgate_model_available{model="small"}')).toBe(1);
    const ready = await fetch(`${gateway.adminUrl}/readyz`);
    expect(ready.status).toBe(200);
    expect(await ready.json()).toEqual({
      status: 'ready',
      upstreams: {
        local: { state: 'unknown' },
        a: {
          state: 'failing',
          cause:
            `POST ${upstreams[0]?.url}/chat/completions: the server failed (status 500). ` +
            'Check its log, or the status page of the provider.',
        },
        b: { state: 'ok' },
        c: { state: 'unknown' },
      },
    });
  });
});

describe('an upstream without the requested model', () => {
  test('is passed over for this request, but its circuit stays closed: it may have other models', async () => {
    upstreams[0]?.play(status(404));
    for (let time = 0; time < 8; time++)
      expect(await readAnswer(gateway, 'chat', false)).toMatchObject({ ending: 'stop' });
    expect(asked()).toEqual([8, 8, 0]);
  });
});

describe('a text that is too long, reported inside a stream', () => {
  test('is refused to the client without a second attempt, and opens no circuit', async () => {
    const told = { error: { code: 400, message: "This model's maximum context length is 10 tokens" } };
    upstreams[0]?.play(
      (response) => void response.writeHead(200, sse).end(`data: ${JSON.stringify(told)}\n\n`),
    );
    for (let time = 0; time < 8; time++)
      expect(await readAnswer(gateway, 'chat', true)).toMatchObject({ code: 'context_length_exceeded' });
    expect(asked()).toEqual([8, 0, 0]);
  });
});

describe('an upstream that rate-limits the gateway', () => {
  test('gets no request for as long as it asks, and the client gets the error when no other upstream is left', async () => {
    for (const upstream of upstreams) upstream.play(status(429, { 'retry-after': '7' }));
    const response = await gateway.post('/v1/chat/completions', {
      model: 'small',
      messages: [{ role: 'user', content: 'x' }],
    });
    expect(response.status).toBe(429);
    expect(response.headers.get('retry-after')).toBe('7');
    expect(await response.json()).toMatchObject({ error: { code: 'upstream_rate_limited' } });
    expect(asked()).toEqual([1, 1, 1]);
    for (const upstream of upstreams) upstream.play(sayTexts(['x']));
    const again = await gateway.post('/v1/chat/completions', {
      model: 'small',
      messages: [{ role: 'user', content: 'x' }],
    });
    expect([again.status, again.headers.get('retry-after')]).toEqual([429, '7']);
    expect(asked()).toEqual([1, 1, 1]);
  });
});

describe('equal routes', () => {
  test('share the requests by weight, and take over for each other', async () => {
    await gateway.close();
    gateway = await start([3, 1]);
    for (let time = 0; time < 200; time++) await readAnswer(gateway, 'chat', false);
    const [first = 0, second = 0, third = 0] = asked();
    expect([first + second, third]).toEqual([200, 0]);
    expect(first).toBeGreaterThan(110);
    expect(second).toBeGreaterThan(15);
    upstreams[0]?.play(status(500));
    for (let time = 0; time < 20; time++)
      expect(await readAnswer(gateway, 'chat', false)).toMatchObject({ ending: 'stop' });
  });
});

describe('a keep-alive connection that the upstream closes while it is reused', () => {
  test('is invisible to many clients at once, even when every keep-alive connection is closed so', async () => {
    await gateway.close();
    const counts = new WeakMap<object, number>();
    upstreams[0]?.play((response, request) => {
      const { socket } = response;
      const count = (counts.get(socket ?? {}) ?? 0) + 1;
      if (socket !== null) counts.set(socket, count);
      if (count > 1) socket?.destroy();
      else void sayTexts(['one ', 'two'])(response, request);
    });
    gateway = await startGateway({
      limits: { requestsPerMinute: 100_000, concurrency: 100 },
      upstreamUrl: upstreams[0]?.url ?? '',
    });
    const endings = new Set<string>();
    const work = async (): Promise<void> => {
      for (let time = 0; time < 10; time++) endings.add((await readAnswer(gateway, 'chat', false)).ending);
    };
    await Promise.all(Array.from({ length: 20 }, work));
    expect([...endings]).toEqual(['stop']);
  });
});

describe('the time limit of a request', () => {
  test('covers all its attempts together, each with the limits of its own upstream', async () => {
    await gateway.close();
    const urls = upstreams.map(({ url }) => url);
    gateway = await startGateway({
      limits: { requestsPerMinute: 100_000 },
      upstreams: {
        // Over before the first one has timed out, if it counted from the request's beginning; long enough on a busy machine.
        a: { url: urls[0] ?? '', timeouts: { firstByte: '900ms', total: '4s' } },
        b: { url: urls[1] ?? '', timeouts: { firstByte: '800ms', total: '850ms' } },
      },
      routes: [
        { upstream: 'a', model: 'm' },
        { upstream: 'b', model: 'm' },
      ],
    });
    upstreams[0]?.play(() => {});
    for (const stream of [true, false])
      expect(await readAnswer(gateway, 'chat', stream)).toMatchObject({ ending: 'stop', text: 'one two' });
    expect(await attemptsOfLast()).toEqual(['a timeout', 'b ok']);
  });
});

describe('an upstream that uses up the whole time limit', () => {
  test('counts as failed, although a little time passed before it was called', async () => {
    await gateway.close();
    gateway = await startGateway({
      upstreamUrl: upstreams[0]?.url ?? '',
      timeouts: { firstByte: '10s', total: '60ms' },
      limits: { requestsPerMinute: 100_000 },
    });
    upstreams[0]?.play(() => {});
    for (let time = 0; time < 5; time++)
      expect(await readAnswer(gateway, 'chat', true)).toMatchObject({ code: 'upstream_timeout' });
    expect(await metric('textgate_upstream_state{upstream="local"}')).toBe(0);
    expect(await metric('textgate_model_available{model="small"}')).toBe(0);
  });
});

import OpenAI from 'openai';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { checkConfig } from '../../src/config/load.ts';
import type { Clock } from '../../src/domain/ports/clock.ts';
import { composeGateway } from '../../src/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';
import { sayTexts, sendJson } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';
import { startGateway } from '../support/test-gateway.ts';

const passthrough = [{ path: '/tokenize', upstream: 'local' }] as const;
const messages = [{ role: 'user' as const, content: 'x' }];
const { upstream, gateway } = await openStage({
  server: { basePath: '/llm/a' },
  passthrough: [...passthrough],
});
const origin = new URL(gateway.url).origin;

describe('a base path', () => {
  test('is a part of the address, below which the official client is served', async () => {
    expect(new URL(gateway.url).pathname).toBe('/llm/a');
    upstream.play(sayTexts(['one ', 'two']));
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 });
    const whole = await client.chat.completions.create({ model: 'small', messages });
    expect(whole.choices[0]?.message.content).toBe('one two');
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['small']);
    expect((await client.models.retrieve('small')).id).toBe('small');
  });

  test('is not passed on to the upstream of a passthrough path', async () => {
    upstream.play((response) => sendJson(response, 200, '{"tokens":[1]}'));
    const answer = await gateway.post('/tokenize?a=b', { text: 'x' });
    expect(await answer.json()).toEqual({ tokens: [1] });
    expect(upstream.seen.at(-1)?.path).toBe('/tokenize?a=b');
  });

  test.each([
    ['/v1/models', 'Did you mean /llm/a/v1/models?'],
    ['/llm/v1/responses', 'Did you mean /llm/a/v1/responses?'],
    ['/llm/a/chat/completions', 'Did you mean /llm/a/v1/chat/completions?'],
    ['/llm/a/v1/model', 'Did you mean /llm/a/v1/models?'],
    ['/tokenize', 'All paths of this service begin with /llm/a, as /llm/a/v1/models does.'],
    ['/llm/ab/v1', 'All paths of this service begin with /llm/a, as /llm/a/v1/models does.'],
  ])('%s outside or below it is refused with the whole path', async (path, advice) => {
    const answer = await fetch(origin + path, { headers: { authorization: `Bearer ${gateway.key}` } });
    expect(answer.status).toBe(404);
    const { error } = (await answer.json()) as { error: { message: string } };
    expect(error.message).toBe(`Unknown request URL: GET ${path}. ${advice}`);
  });
});

describe('the probes of the listener for clients', () => {
  test.each([
    ['/healthz', { status: 'ok' }],
    ['/readyz', { status: 'ready' }],
    ['/llm/a/healthz', { status: 'ok' }],
    ['/llm/a/readyz?x=y', { status: 'ready' }],
  ])('%s needs no key and says nothing else', async (path, body) => {
    const answer = await fetch(origin + path);
    expect([answer.status, await answer.json()]).toEqual([200, body]);
    const head = await fetch(origin + path, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const posted = await fetch(origin + path, { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  test('/readyz is 503 while the models are not known, without the reason', async () => {
    const discovering = await startGateway({ upstreamUrl: upstream.url, discover: true });
    onTestFinished(() => discovering.close());
    upstream.play((response) => sendJson(response, 503, '{}'));
    const answer = await fetch(`${discovering.url}/readyz`);
    expect([answer.status, await answer.json()]).toEqual([503, { status: 'not ready' }]);
    expect((await fetch(`${discovering.url}/healthz`)).status).toBe(200);
  });

  test('/readyz is 503 from SIGTERM on, while requests are still taken and /healthz is 200', async () => {
    const config = {
      server: { port: 0, shutdownDelay: '1h' },
      admin: { port: 0 },
      storage: { url: 'sqlite::memory:' },
      upstreams: { demo: { url: 'demo:' } },
      models: { from: 'demo' },
    };
    // Nothing is left of the delay when the test is over.
    const withoutHours: Clock = {
      ...systemClock,
      schedule: (ms, callback) => (ms >= 3_600_000 ? () => {} : systemClock.schedule(ms, callback)),
    };
    const leaving = composeGateway(checkConfig(config, 'the test'), { clock: withoutHours });
    onTestFinished(() => leaving.close());
    const { url } = await leaving.listen();
    const key = await leaving.createFirstKey();
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    // What SIGTERM calls.
    leaving.leave();
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const models = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    expect(models.status).toBe(200);
  });

  test('are no paths of an app that mounts the routes', async () => {
    const answer = await gateway.gateway.fetch(new Request('http://x/healthz'));
    expect(answer.status).toBe(404);
  });
});

describe('every answer forbids browsers to guess its type, and those for one client to be stored:', () => {
  const admin = (path: string): [string, RequestInit] => [
    gateway.adminUrl + path,
    { headers: { authorization: `Bearer ${gateway.adminToken}` } },
  ];
  const csv = (): [string, RequestInit] => [
    `${gateway.adminUrl}/admin/records`,
    { headers: { authorization: `Bearer ${gateway.adminToken}`, accept: 'text/csv' } },
  ];
  const own = (path: string): [string, RequestInit] => [
    gateway.url + path,
    { headers: { authorization: `Bearer ${gateway.key}` } },
  ];
  test.each([
    ['a list of models', () => own('/v1/models')],
    ['a key of its own', () => own('/v1/key')],
    ['an unknown path', () => [`${origin}/x`, {}]],
    ['a missing key', () => [`${gateway.url}/v1/models`, {}]],
    ['a probe', () => [`${origin}/healthz`, { method: 'HEAD' }]],
    ['a preflight', () => [`${gateway.url}/v1/models`, { method: 'OPTIONS' }]],
    ['metrics', () => [`${gateway.adminUrl}/metrics`, {}]],
    ['a list of records', () => admin('/admin/records')],
    ['a list of records as CSV', () => csv()],
    ['a backup', () => admin('/admin/backup')],
    ['an unknown path of operators', () => admin('/x')],
  ] as readonly [string, () => [string, RequestInit]][])('%s', async (_name, target) => {
    const { headers, body } = await fetch(...target());
    await body?.cancel();
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-powered-by')).toBeNull();
  });

  test.each([
    ['a whole text', false, 'no-store'],
    ['a stream', true, 'no-store, no-transform'],
  ])('%s', async (_name, stream, control) => {
    upstream.play(sayTexts(['x']));
    const { headers } = await gateway.post('/v1/chat/completions', { model: 'small', messages, stream });
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('cache-control')).toBe(control);
  });

  test.each([
    [200, undefined, 'no-store'],
    [204, undefined, 'no-store'],
    [304, 'max-age=60', 'max-age=60'],
  ])(
    '%i of an upstream that is passed on, whose own rule for caches stays',
    async (status, given, control) => {
      upstream.play(
        (response) =>
          void response.writeHead(status, given === undefined ? {} : { 'cache-control': given }).end(),
      );
      const { headers } = await gateway.post('/tokenize', { text: 'x' });
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cache-control')).toBe(control);
    },
  );

  test.each([
    ['garbage', 'NONSENSE\r\n\r\n'],
    ['a head without a host', 'GET /healthz HTTP/1.1\r\n\r\n'],
    ['a head that is too large', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}`],
    ['CONNECT', 'CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n'],
    ['an unsupported expectation', 'POST / HTTP/1.1\r\nHost: x\r\nExpect: y\r\n\r\n'],
  ])('the refusal of %s, on both listeners', async (_name, bytes) => {
    for (const url of [origin, gateway.adminUrl]) {
      const client = openRaw(url);
      client.socket.write(bytes);
      await eventually('it is refused', () => client.text().includes('\r\n\r\n'));
      expect(client.text()).toMatch(/^HTTP\/1\.1 4\d\d .*\r\n(.+\r\n)*x-content-type-options: nosniff\r\n/i);
    }
  });
});

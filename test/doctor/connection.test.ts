import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { checkNamed, examineUrl, findings, playProvider, wholeBody } from '../support/examine.ts';
import { cut, sendJson, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startTlsServer } from '../support/tls-server.ts';

let upstream: ScriptedUpstream;
beforeAll(async () => void (upstream = await startUpstream()));
afterAll(() => upstream.close());

describe('a fault of the connection ends the examination with its cause', () => {
  test('a name without an address', async () => {
    const { checks } = await examineUrl('http://nosuch.invalid/v1');
    expect(checks).toHaveLength(1);
    expect(checks[0]).toMatchObject({ id: 'address', status: 'fault' });
    expect(checks[0]?.detail).toMatch(/nosuch\.invalid/);
  });

  test('a port that refuses', async () => {
    const closed = await startUpstream();
    await closed.close();
    const { checks } = await examineUrl(closed.url);
    expect(checks.map(({ id }) => id)).toEqual(['address', 'connection']);
    expect(checks[1]?.detail).toMatch(/connection refused$/);
    expect(checks[1]?.advice).toMatch(/upstreams\.mine\.url/);
  });

  test('TLS to a port without it', async () => {
    const { checks } = await examineUrl(upstream.url.replace('http:', 'https:'));
    expect(checks.map(({ id }) => id)).toEqual(['address', 'connection', 'tls']);
    expect(checks[2]?.advice).toMatch(/Write http:\/\//);
  });

  test('a certificate that is self-signed', async () => {
    const server = await startTlsServer((_request, response) => void response.end());
    onTestFinished(() => void server.close());
    const report = await examineUrl(`https://localhost:${(server.address() as AddressInfo).port}/v1`);
    expect(checkNamed(report, 'tls').detail).toMatch(/self-signed/);
  });

  test('a link-local address is refused like in a config', async () => {
    await expect(examineUrl('http://169.254.169.254/v1')).rejects.toThrow(/link-local/);
  });

  test('a server that accepts and stays silent', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    onTestFinished(() => void silent.close());
    await new Promise((resolve) => silent.once('listening', resolve));
    const { port } = silent.address() as AddressInfo;
    const report = await examineUrl(`http://127.0.0.1:${port}/v1`, { callMs: 200 });
    expect(checkNamed(report, 'models').detail).toMatch(/no answer within 0\.2 s$/);
  });
});

describe('the key', () => {
  test.each([401, 402, 403])('that is answered with %i is a fault of the key', async (status) => {
    playProvider(upstream, { whole: (response) => sendJson(response, status, '{}') });
    const report = await examineUrl(upstream.url, { upstream: { apiKey: 'a-key-for-tests' } });
    expect(findings(report)).toEqual([{ id: 'key', status: 'fault' }]);
    expect(checkNamed(report, 'key').advice).toMatch(/upstreams\.mine\.apiKey/);
    expect(report.checks.map(({ id }) => id)).not.toContain('chat.stream');
  });

  test('that not even the list accepts is a fault of the key, too', async () => {
    playProvider(upstream, { models: (response) => sendJson(response, 401, '{}') });
    const report = await examineUrl(upstream.url);
    expect(findings(report)).toEqual([{ id: 'key', status: 'fault' }]);
    expect(checkNamed(report, 'key').advice).toBe('Set upstreams.mine.apiKey.');
  });

  test('that an answer with status 200 does not accept is a fault of the key', async () => {
    playProvider(upstream, {
      whole: (response) => sendJson(response, 200, '{"error":{"message":"no","code":401}}'),
    });
    const report = await examineUrl(upstream.url, { upstream: { apiKey: 'a-key-for-tests' } });
    expect(checkNamed(report, 'key').status).toBe('fault');
    expect(report.checks.at(-1)?.id).toBe('chat.whole.error_in_answer');
  });

  test('that is accepted, or not needed', async () => {
    playProvider(upstream);
    expect(checkNamed(await examineUrl(upstream.url), 'key').detail).toMatch(/none is required/);
    const report = await examineUrl(upstream.url, { upstream: { apiKey: 'a-key-for-tests' } });
    expect(checkNamed(report, 'key').detail).toBe('accepted');
  });
});

describe('a wrong key', () => {
  const examineWrongKey = (apiKey?: string) =>
    examineUrl(upstream.url, { upstream: apiKey === undefined ? {} : { apiKey }, triesWrongKey: true });

  test.each<[string, number, string]>([
    ['refused with 401 is as it should be', 401, 'ok'],
    ['refused with another status is a warning', 500, 'warning'],
    ['accepted is a fault', 200, 'fault'],
  ])('that is %s', async (_name, status, expected) => {
    playProvider(upstream, {
      whole: (response) => {
        const isWrong = upstream.seen.at(-1)?.headers.authorization !== 'Bearer a-key-for-tests';
        sendJson(response, isWrong ? status : 200, wholeBody());
      },
    });
    const report = await examineWrongKey('a-key-for-tests');
    expect([checkNamed(report, 'wrong_key').status, report.status]).toEqual([expected, expected]);
  });

  test.each<[string, string, string]>([
    [
      'refused with an error under status 200 is a warning',
      '{"error":{"message":"wrong","code":"invalid_api_key"}}',
      'warning',
    ],
    ['answered with something else is not judged', '{"hello":1}', 'skipped'],
    ['answered with an unknown finish reason is not judged', wholeBody('Hi', 'banana'), 'skipped'],
  ])('that is %s', async (_name, body, expected) => {
    playProvider(upstream, {
      whole: (response) => {
        const isWrong = upstream.seen.at(-1)?.headers.authorization !== 'Bearer a-key-for-tests';
        sendJson(response, 200, isWrong ? body : wholeBody());
      },
    });
    expect(checkNamed(await examineWrongKey('a-key-for-tests'), 'wrong_key').status).toBe(expected);
  });

  test.each([{ 'x-my-key': 'a-key-for-tests' }, { 'x-title': 'my app' }])(
    'is not tried where only headers are set, which may hold a key: %j',
    async (headers) => {
      playProvider(upstream);
      const report = await examineUrl(upstream.url, { upstream: { headers }, triesWrongKey: true });
      expect(findings(report)).toEqual([]);
      expect(checkNamed(report, 'wrong_key')).toMatchObject({
        status: 'skipped',
        detail: 'upstreams.mine.apiKey is not set',
      });
      expect(checkNamed(report, 'key').detail).toMatch(
        /^none is set, and none is required beside the headers/,
      );
    },
  );

  test('is not tried at the built-in demo', async () => {
    const report = await examineUrl('demo:', {
      upstream: { apiKey: 'a-key-for-tests' },
      triesWrongKey: true,
    });
    expect(findings(report)).toEqual([]);
    expect(checkNamed(report, 'wrong_key').status).toBe('skipped');
  });

  test('is not tried at an upstream without a key, nor unless that is wanted', async () => {
    playProvider(upstream);
    expect(checkNamed(await examineWrongKey(), 'wrong_key').status).toBe('skipped');
    const report = await examineUrl(upstream.url, { upstream: { apiKey: 'a-key-for-tests' } });
    expect(report.checks.map(({ id }) => id)).not.toContain('wrong_key');
  });
});

describe('the models', () => {
  const routes = (...names: readonly string[]) => ({
    small: { routes: names.map((model) => ({ upstream: 'mine', model })), free: true },
  });

  test('the first route is asked, and a route that is not in the list is a warning with the nearest name', async () => {
    playProvider(upstream);
    const report = await examineUrl(upstream.url, { models: routes('tiny', 'tinny') });
    expect(findings(report)).toEqual([{ id: 'model', status: 'warning' }]);
    expect(checkNamed(report, 'model').detail).toBe(
      "'tinny' is not in the list of models (did you mean 'tiny'?)",
    );
  });

  test('without a list, a model that is named is asked all the same', async () => {
    playProvider(upstream, { models: (response) => sendJson(response, 404, '{}') });
    const report = await examineUrl(upstream.url, { models: routes('tiny') });
    expect(findings(report)).toEqual([{ id: 'models', status: 'warning' }]);
    expect(checkNamed(report, 'chat.stream').status).toBe('ok');
  });

  test('without a list and a name, the answers are skipped', async () => {
    playProvider(upstream, { models: (response) => sendJson(response, 404, '{}') });
    const report = await examineUrl(upstream.url);
    expect(findings(report)).toEqual([{ id: 'models', status: 'fault' }]);
    expect(checkNamed(report, 'answers').detail).toMatch(/--model/);
  });

  test('a discovered list is asked for the first model that is allowed', async () => {
    const list = JSON.stringify({ data: [{ id: 'embedding-1' }, { id: 'tiny' }] });
    playProvider(upstream, { models: (response) => sendJson(response, 200, list) });
    const report = await examineUrl(upstream.url, { models: { from: 'mine', allow: ['ti*'] } });
    expect(findings(report)).toEqual([]);
    expect(checkNamed(report, 'models').detail).toBe("2 models listed; the first one is asked: 'tiny'");
    const empty = await examineUrl(upstream.url, { models: { from: 'mine', allow: ['none'] } });
    expect(checkNamed(empty, 'models').detail).toMatch(/none of them allowed/);
  });

  test.each<[string, (response: ServerResponse) => void, RegExp, RegExp]>([
    [
      'stalls',
      (response) => void response.writeHead(200).write('{"data":['),
      /no answer within 0\.3 s$/,
      /load of the server/,
    ],
    [
      'breaks off',
      (response) => {
        response.writeHead(200).write('{"data":[');
        setTimeout(() => cut(response, 'rst'), 20);
      },
      /the connection broke in the middle of the answer$/,
      /proxies/,
    ],
    [
      'is over 1 MiB',
      (response) =>
        sendJson(response, 200, JSON.stringify({ data: [{ id: 'tiny' }], x: 'x'.repeat(1_100_000) })),
      /v1\/models: the list is over 1 MiB, and is not read$/,
      /Name the models/,
    ],
    [
      'is something else',
      (response) => sendJson(response, 200, '{"hello":1}'),
      /the answer is not a list of models$/,
      /path of/,
    ],
  ])('a list that %s is a fault with that cause', async (_name, models, detail, advice) => {
    playProvider(upstream, { models });
    const report = await examineUrl(upstream.url, { callMs: 300 });
    expect(findings(report)).toEqual([{ id: 'models', status: 'fault' }]);
    expect(checkNamed(report, 'models').detail).toMatch(detail);
    expect(checkNamed(report, 'models').advice).toMatch(advice);
  });

  test('an error status of the list counts although its body stalls', async () => {
    playProvider(upstream, {
      models: (response) => void response.writeHead(401, { 'content-length': '9' }).write('{'),
    });
    const report = await examineUrl(upstream.url, { callMs: 300 });
    expect(findings(report)).toEqual([{ id: 'key', status: 'fault' }]);
    expect(checkNamed(report, 'key').detail).toMatch(/an API key is required \(status 401\)$/);
  });

  test('an upstream that no model is routed to is only connected to, unless a model is named', async () => {
    playProvider(upstream, { models: (response) => sendJson(response, 404, '{}') });
    const settings = {
      models: { small: { routes: [{ upstream: 'mine', model: 'tiny' }], free: true } },
      passthrough: [{ path: '/tokenize', upstream: 'mine', free: true }],
    };
    const unrouted = { ...settings, models: {} };
    upstream.seen.splice(0);
    const report = await examineUrl(upstream.url, unrouted);
    expect(report.checks.map(({ id, status }) => [id, status])).toEqual([
      ['address', 'ok'],
      ['connection', 'ok'],
      ['tls', 'skipped'],
      ['answers', 'skipped'],
    ]);
    expect(upstream.seen).toEqual([]);
    expect(report.status).toBe('ok');
    for (const asked of [settings, { ...unrouted, model: 'tiny' }])
      expect(checkNamed(await examineUrl(upstream.url, asked), 'chat.stream').status).toBe('ok');
  });

  test('an empty list is a warning', async () => {
    playProvider(upstream, { models: (response) => sendJson(response, 200, '{"data":[]}') });
    expect(checkNamed(await examineUrl(upstream.url), 'models').status).toBe('warning');
  });
});

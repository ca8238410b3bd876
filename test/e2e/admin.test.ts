import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { openStage } from '../support/stage.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { chatFrames, cut, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

const { upstream, gateway } = await openStage({ limits: { requestsPerMinute: 60, concurrency: 2 } });
upstream.play(sayTexts(['one ', 'two']));

function admin(
  path: string,
  init: { method?: string; body?: string; headers?: Record<string, string> } = {},
) {
  const headers = { authorization: `Bearer ${gateway.adminToken}`, 'content-type': 'application/json' };
  return fetch(gateway.adminUrl + path, { ...init, headers: { ...headers, ...init.headers } });
}

describe('keys', () => {
  test('an API key is created with its secret shown once, works at once, and is listed without the secret', async () => {
    const made = await admin('/admin/keys', { method: 'POST', body: '{"name":"bob","concurrency":3}' });
    expect(made.status).toBe(201);
    const key = (await made.json()) as { id: string; key: string };
    expect(key).toMatchObject({ name: 'bob', limits: { concurrency: 3, requests_per_minute: 60 } });
    expect(key.key).toMatch(/^sk-tg-[A-Za-z0-9]{12}-[A-Za-z0-9_-]{43}[A-Za-z0-9]{6}$/);
    expect(key.id).toBe(`key_${key.key.slice(6, 18)}`);

    const models = await fetch(`${gateway.url}/v1/models`, {
      headers: { authorization: `Bearer ${key.key}` },
    });
    expect(models.status).toBe(200);

    const listed = await (await admin('/admin/keys')).text();
    expect(JSON.parse(listed)).toMatchObject({
      object: 'list',
      data: [{ id: key.id }, { name: 'test' }],
      next: null,
    });
    expect(listed).not.toContain(key.key.slice(19));
  });

  test('a key has its own compatibility settings, where they differ from the service’s', async () => {
    const body = JSON.stringify({ name: 'strict', compatibility: { sampling: 'strict' } });
    const made = await admin('/admin/keys', { method: 'POST', body });
    expect(await made.json()).toMatchObject({
      compatibility: {
        sampling: 'strict',
        unknown_fields: 'reject',
        responses_done: false,
        usage_cost: false,
        charge_comment: false,
      },
    });
  });

  test('keys are listed in pages, newest first, each one once', async () => {
    for (const name of ['a', 'b', 'c']) await gateway.gateway.createKey(name);
    const ids: string[] = [];
    for (let before = ''; ;) {
      const page = (await (await admin(`/admin/keys?limit=2${before}`)).json()) as {
        data: { id: string }[];
        next: string | null;
      };
      ids.push(...page.data.map(({ id }) => id));
      if (page.next === null) break;
      before = `&before=${page.next}`;
    }
    expect(ids.length).toBeGreaterThanOrEqual(4);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('a list with a misspelt parameter is refused with the nearest name, as it would be of more than was asked for', async () => {
    for (const [path, meant] of [
      ['/keys?stauts=revoked', 'status'],
      ['/records?modle=small', 'model'],
      ['/webhooks/deliveries?stat=dead', 'state'],
      ['/ledger/roots?limt=1', 'limit'],
      ['/archive?bfore=2026-01-01', 'before'],
      ['/usage?modle=small', 'model'],
    ] as const) {
      const { status, body } = await askAdmin(gateway, 'GET', path);
      expect([path, status]).toEqual([path, 400]);
      expect(body.error).toMatchObject({
        code: 'unknown_parameter',
        message: expect.stringContaining(`Did you mean '${meant}'?`),
      });
    }
  });

  test('usage and records of a key that is none are a 404, as that key itself is', async () => {
    for (const path of ['/usage?key=key_nope', '/records?key=key_nope', '/keys/key_nope'])
      expect(await askAdmin(gateway, 'GET', path)).toMatchObject({
        status: 404,
        body: { error: { code: 'key_not_found' } },
      });
    const { body } = await askAdmin(gateway, 'GET', '/keys?limit=1');
    expect(await askAdmin(gateway, 'GET', `/records?key=${body.data[0].id}`)).toMatchObject({ status: 200 });
  });

  test('keys are searched by a part of their name or the beginning of their id, and by their state', async () => {
    const made = await gateway.gateway.keys.create({ name: 'Search 50%' });
    await gateway.gateway.keys.create({ name: 'search 500' });
    const { id } = await gateway.gateway.keys.create({ name: 'research' });
    await gateway.gateway.keys.revoke(id);
    /** The names, sorted, since keys of the same millisecond have any order, and the cursor. */
    const find = async (query: string): Promise<readonly [readonly string[], string | null]> => {
      const { data, next } = (await (await admin(`/admin/keys?${query}`)).json()) as {
        data: { name: string }[];
        next: string | null;
      };
      return [data.map(({ name }) => name).toSorted(), next];
    };
    expect(await find('search=SEARCH')).toEqual([['Search 50%', 'research', 'search 500'], null]);
    expect(await find('search=50%25')).toEqual([['Search 50%'], null]);
    expect(await find(`search=${made.id.slice(0, -2)}`)).toEqual([['Search 50%'], null]);
    expect(await find('search=search&status=revoked')).toEqual([['research'], null]);
    const [first, next] = await find('search=search&status=active&limit=1');
    const [second, end] = await find(`search=search&status=active&limit=1&before=${next}`);
    expect([...first, ...second].toSorted()).toEqual(['Search 50%', 'search 500']);
    expect(end).toBeNull();
    expect(await find('search=none')).toEqual([[], null]);
    expect(await find('search=')).toEqual(await find('limit=50'));
    const { data } = await gateway.gateway.keys.list({ search: 'search', status: 'revoked' });
    expect(data).toMatchObject([{ id }]);
  });

  test.each([
    ['status=gone', 'status'],
    ['status=', 'status'],
    ['search=a&search=b', 'search'],
    ['search=%00', 'search'],
    [`search=${'x'.repeat(101)}`, 'search'],
    ['search=a&before=key_none', 'before'],
  ])('a list of keys with %s is refused', async (query, param) => {
    const response = await admin(`/admin/keys?${query}`);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_value', param } });
  });

  test.each([
    ['{', 400, 'invalid_json', null],
    ['{}', 400, 'invalid_value', 'name'],
    ['{"name":""}', 400, 'invalid_value', 'name'],
    ['{"name":"x","concurrency":0}', 400, 'invalid_value', 'concurrency'],
    ['{"name":"x","concurency":1}', 400, 'unknown_parameter', 'concurency'],
    ['{"name":"x","compatibility":{"sampling":"no"}}', 400, 'invalid_value', 'compatibility.sampling'],
  ])('no key is created from %s', async (body, status, code, param) => {
    const response = await admin('/admin/keys', { method: 'POST', body });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code, param } });
  });
});

describe('the admin token', () => {
  test('the admin token is required for every path below /admin, but not for probes', async () => {
    const open = await Promise.all(
      ['/healthz', '/readyz', '/metrics'].map((path) => fetch(gateway.adminUrl + path)),
    );
    expect(open.map(({ status }) => status)).toEqual([200, 200, 200]);
    for (const path of ['/admin/keys', '/admin/other']) {
      const refused = await fetch(gateway.adminUrl + path);
      expect(refused.status).toBe(401);
      expect(await refused.json()).toMatchObject({ error: { code: 'invalid_api_key' } });
    }
    expect((await admin('/admin/other')).status).toBe(404);
    expect((await admin('/admin/keys', { method: 'DELETE' })).status).toBe(405);
  });

  test('the admin routes refuse a web page even with the token, by its origin or by its host name', async () => {
    expect((await admin('/admin/keys', { headers: { origin: 'http://localhost:8081' } })).status).toBe(401);
    expect(await statusWithHost('rebound.example')).toBe(401);
    expect(await statusWithHost('localhost:8081')).toBe(200);
  });

  test('the admin routes refuse further guesses of the token after ten wrong ones', async () => {
    const other = await startGateway();
    const guess = (token: string) =>
      fetch(`${other.adminUrl}/admin/keys`, { headers: { authorization: `Bearer ${token}` } });
    const statuses: number[] = [];
    for (let round = 0; round < 12; round++) statuses.push((await guess(`wrong-${round}`)).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
    await other.close();
  });

  test('the admin routes always accept the right token after many wrong ones, and count all loopback addresses as one', async () => {
    const other = await startGateway();
    const guessFrom = (localAddress: string, token: string) =>
      statusOf(`${other.adminUrl}/admin/keys`, { authorization: `Bearer ${token}` }, localAddress);
    const statuses: (number | undefined)[] = [];
    for (let host = 1; host <= 12; host++) statuses.push(await guessFrom(`127.0.1.${host}`, 'wrong'));
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
    expect(await guessFrom('127.0.0.1', other.adminToken)).toBe(200);
    expect(await guessFrom('127.0.0.1', 'wrong')).toBe(429);
    await other.close();
  });

  test.each(['/metrics', '/healthz', '/readyz', '/elsewhere'])(
    'a loopback listener refuses web pages on %s, and accepts probes by address and by localhost',
    async (path) => {
      const url = gateway.adminUrl + path;
      const usual = path === '/elsewhere' ? 404 : 200;
      expect(await statusOf(url, { host: 'evil.example:8081' })).toBe(401);
      expect(await statusOf(url, { origin: 'http://evil.example' })).toBe(401);
      expect(await statusOf(url, { 'sec-fetch-site': 'cross-site' })).toBe(401);
      for (const host of ['127.0.0.1:8081', 'localhost', '[::1]:8081'])
        expect(await statusOf(url, { host })).toBe(usual);
    },
  );

  test('metrics and probes need no token where another app mounts the admin routes', async () => {
    const { default: express } = await import('express');
    const server = express().use(gateway.gateway.admin).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    expect(await statusOf(`http://127.0.0.1:${port}/metrics`, { host: 'metrics.internal' })).toBe(200);
    server.close();
  });

  test('requests without a token do not count as wrong ones', async () => {
    for (let round = 0; round < 20; round++) await fetch(`${gateway.adminUrl}/admin/keys`);
    expect((await admin('/admin/keys')).status).toBe(200);
  });
});

describe('metrics', () => {
  test('metrics count requests, streams, tokens, limits and endings with a closed set of labels', async () => {
    const messages = [{ role: 'user', content: 'x' }];
    const { secret } = await gateway.gateway.createKey('limited', { requestsPerMinute: 1 });
    const headers = { authorization: `Bearer ${secret}` };
    const stream = { model: 'small', messages, stream: true, temperature: 0 };
    await (await gateway.post('/v1/chat/completions', stream, { headers })).text();
    await (await gateway.post('/v1/chat/completions', stream, { headers })).text();
    await (await gateway.post('/v1/responses', { model: 'small', input: 'x' })).text();
    await (await gateway.post('/v1/responses', { model: 'no-such-model', input: 'x' })).text();
    upstream.play((response) => {
      sendStream(response, chatFrames(['a']).slice(0, 2));
      setImmediate(() => cut(response, 'fin'));
    });
    await (await gateway.post('/v1/responses', { model: 'small', input: 'x', stream: true })).text();

    const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    for (const line of [
      'textgate_requests_total{protocol="chat",model="small",mode="stream",outcome="completed",status="200"} 1',
      'textgate_requests_total{protocol="responses",model="small",mode="sync",outcome="completed",status="200"} 1',
      'textgate_requests_total{protocol="responses",model="none",mode="sync",outcome="refused",status="404"} 1',
      'textgate_limited_total{cause="rate"} 1',
      'textgate_stripped_parameters_total{parameter="temperature"} 1',
      'textgate_stream_endings_total{protocol="chat",ending="completed"} 1',
      'textgate_stream_endings_total{protocol="responses",ending="upstream_truncated"} 1',
      'textgate_tokens_total{model="small",type="output"} 14',
      'textgate_requests_in_flight{protocol="chat"} 0',
      'textgate_streams_open{protocol="responses"} 0',
      'gen_ai_server_time_to_first_token_seconds_count{gen_ai_operation_name="chat",gen_ai_request_model="small",gen_ai_provider_name="local"} 2',
      'gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_request_model="small",gen_ai_provider_name="local",gen_ai_token_type="input"} 22',
    ])
      expect(text).toContain(line);
    expect(text).not.toContain('no-such-model');
    expect(text).not.toContain('key_');
  });
});

describe('readiness', () => {
  test('readiness waits for the list of models, and reports that as its reason', async () => {
    const provider = await startUpstream();
    provider.play((response) => void response.writeHead(503).end());
    const clock = createFakeClock();
    const discovering = await startGateway({ upstreamUrl: provider.url, discover: true, clock });
    const unready = await fetch(`${discovering.adminUrl}/readyz`);
    expect(unready.status).toBe(503);
    expect(await unready.json()).toMatchObject({
      status: 'not ready',
      reason:
        `no list of models from the upstream yet: GET ${provider.url}/models: not ready or overloaded (status 503). ` +
        'Wait: a server that loads a model may answer so until it is ready.',
      upstreams: { local: { state: 'failing', cause: expect.stringContaining('status 503') as string } },
    });
    const early = await discovering.post('/v1/responses', { model: 'a/b', input: 'x' });
    expect(early.status).toBe(502);
    expect(await early.text()).not.toContain(new URL(provider.url).host);

    provider.play(
      (response) => void response.writeHead(200).end('{"data":[{"id":"a/b","created":7},{"id":3},{}]}'),
    );
    clock.advance(2_000);
    const ready = await fetch(`${discovering.adminUrl}/readyz`);
    expect(ready.status).toBe(200);
    expect(await ready.json()).toEqual({ status: 'ready', upstreams: { local: { state: 'ok' } } });
    expect(await discovering.client.models.retrieve('a/b')).toMatchObject({ id: 'a/b', created: 7 });
    expect((await discovering.client.models.list()).data).toHaveLength(1);
    await discovering.close();
    await provider.close();
  });
});

function statusWithHost(host: string): Promise<number | undefined> {
  return statusOf(`${gateway.adminUrl}/admin/keys`, { host, authorization: `Bearer ${gateway.adminToken}` });
}

/** Sends a request with any `Host` header and from any address, which `fetch` does not allow. */
function statusOf(
  url: string,
  headers: Readonly<Record<string, string>>,
  localAddress = '127.0.0.1',
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(url, { headers, localAddress }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

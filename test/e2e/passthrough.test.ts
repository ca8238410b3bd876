import { request as sendRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;
/** Every line of the log, read. */
let log: object[];

beforeEach(async () => {
  upstream = await startUpstream();
  log = [];
  gateway = await startGateway({
    upstreamUrl: upstream.url,
    logDestination: { write: (line) => void log.push(JSON.parse(line) as object) },
    timeouts: { firstByte: '300ms', idle: '300ms', total: '2s' },
    passthrough: [
      { path: '/tokenize', upstream: 'local' },
      { path: '/rerank', upstream: 'local', price: { request: '0.001' } },
      { path: '/health', upstream: 'local', free: true },
    ],
    server: { maxBody: '64KiB' },
  });
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const lastRecord = async () => (await askAdmin(gateway, 'GET', '/records?limit=1')).body.data[0];
const inFlight = async () => (await askAdmin(gateway, 'GET', '/in-flight')).body.data;

/** Sends what fetch would not; resolves with the status. */
function askRaw({ path = '/tokenize', headers = {} }: { path?: string; headers?: object }): Promise<unknown> {
  const { hostname, port } = new URL(gateway.url);
  const all = { authorization: `Bearer ${gateway.key}`, ...headers };
  const sent = sendRequest({ hostname, port, method: 'POST', path, headers: all });
  sent.end();
  return new Promise((resolve) => sent.once('response', (response) => resolve(response.resume().statusCode)));
}

describe('an answer that is passed on', () => {
  test.each([500, 502, 503])(
    'with status %i arrives whole, though it counts as a failure',
    async (status) => {
      upstream.play((response) => void response.writeHead(status).end('{"oh":"no"}'));
      const response = await gateway.post('/tokenize', '{}');
      expect(response.status).toBe(status);
      expect(await response.text()).toBe('{"oh":"no"}');
      expect(await lastRecord()).toMatchObject({ outcome: 'upstream_failed', status });
    },
  );

  test.each([
    ['204', 204, {}],
    ['a length of 0', 200, { 'content-length': '0' }],
  ])(
    'without a body (%s) ends for its client when it is settled, and not before',
    async (_name, status, head) => {
      upstream.play((response) => void response.writeHead(status, head).end());
      expect((await gateway.post('/tokenize', '{}')).status).toBe(status);
      expect(await inFlight()).toEqual([]);
      expect(await lastRecord()).toMatchObject({ outcome: 'completed' });
    },
  );
});

describe('a path that the operator passes on', () => {
  test('reaches the upstream as it is, and so does its answer', async () => {
    upstream.play(
      (response) =>
        void response
          .writeHead(207, {
            'content-type': 'application/x-tokens',
            'set-cookie': 'session=1',
            'x-powered-by': 'them',
          })
          .end('[1,2]'),
    );
    const response = await gateway.post('/tokenize?add_special=1', '{"content" : "x"}', {
      headers: {
        cookie: 'a=b',
        'x-forwarded-for': '10.0.0.1',
        'x-mine': '1',
        'content-type': 'application/json',
      },
    });
    expect([response.status, await response.text()]).toEqual([207, '[1,2]']);
    expect(response.headers.get('content-type')).toBe('application/x-tokens');
    expect(response.headers.get('set-cookie')).toBeNull();
    expect(response.headers.get('x-powered-by')).toBeNull();
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('x-request-id')).toMatch(/^req_/);
    expect(upstream.seen).toHaveLength(1);
    const [seen] = upstream.seen;
    expect(seen).toMatchObject({
      method: 'POST',
      path: '/tokenize?add_special=1',
      body: '{"content" : "x"}',
    });
    const { accept: _accept, 'accept-language': _language, ...headers } = seen?.headers ?? {};
    expect(headers).toEqual({
      host: new URL(upstream.url).host,
      connection: 'close',
      'content-type': 'application/json',
      'content-length': '17',
      'accept-encoding': 'identity',
      'user-agent': 'textgate',
      authorization: 'Bearer sk-upstream-secret',
    });
  });

  test('is recorded as a request without tokens, and costs nothing', async () => {
    upstream.play((response) => void response.end('x'));
    await (await gateway.post('/tokenize', '{}')).text();
    expect(await lastRecord()).toMatchObject({
      protocol: 'passthrough',
      model: '/tokenize',
      upstream: 'local',
      outcome: 'completed',
      status: 200,
      usage: null,
      charge: '0.00',
      attempts: [{ upstream: 'local', result: 'ok' }],
    });
  });

  test('is no other path: neither below it nor beside it', async () => {
    for (const path of [
      '/tokenize/x',
      '/tokenizer',
      '/Tokenize',
      '/tokenize/',
      '/v1/tokenize',
      '/detokenize',
    ])
      expect((await gateway.post(path, '{}')).status).toBe(404);
    expect(upstream.seen).toEqual([]);
  });

  test.each([
    ['no key', {}],
    ['a wrong key', { authorization: 'Bearer sk-wrong' }],
  ])('is refused to %s', async (_name, headers) => {
    const response = await fetch(`${gateway.url}/tokenize`, { method: 'POST', headers });
    expect(response.status).toBe(401);
    expect(upstream.seen).toEqual([]);
  });

  test('is refused to a key with a list of models that does not name it', async () => {
    const { secret: listed } = await gateway.gateway.createKey('x', { models: ['small'] });
    const { secret: allowed } = await gateway.gateway.createKey('x', { models: ['small', '/tokenize'] });
    upstream.play((response) => void response.end('x'));
    const statusWith = async (key: string): Promise<number> =>
      (await gateway.post('/tokenize', '{}', { headers: { authorization: `Bearer ${key}` } })).status;
    expect([await statusWith(listed), await statusWith(allowed)]).toEqual([403, 200]);
  });

  test('can’t be asked to show what it was asked with: its head holds the upstream’s key', async () => {
    upstream.play((response, { headers }) => void response.end(JSON.stringify(headers)));
    const { hostname, port } = new URL(gateway.url);
    const headers = { authorization: `Bearer ${gateway.key}` };
    const sent = sendRequest({ hostname, port, method: 'TRACE', path: '/tokenize', headers }).end();
    const status = await new Promise((resolve) =>
      sent.once('response', (response) => resolve(response.resume().statusCode)),
    );
    expect([status, upstream.seen]).toEqual([405, []]);
  });

  test('whose upstream keeps closing its connections is served all the same, and keeps its health', async () => {
    upstream.play((response) => {
      response.end('x');
      setImmediate(() => response.socket?.destroy());
    });
    for (let time = 0; time < 20; time++) expect((await gateway.post('/tokenize', '{}')).status).toBe(200);
    const ready = await (await fetch(`${gateway.adminUrl}/readyz`)).json();
    expect(ready).toMatchObject({ upstreams: { local: 'ok' } });
  });

  test('asked for as a proxy is asked reaches the upstream by its path alone', async () => {
    upstream.play((response) => void response.end('x'));
    expect(await askRaw({ path: 'http://elsewhere.test/tokenize?a=1' })).toBe(200);
    expect(upstream.seen[0]?.path).toBe('/tokenize?a=1');
    expect(upstream.seen[0]?.headers.host).toBe(new URL(upstream.url).host);
  });

  test.each(['http://evil:99999/tokenize', 'http://[x]/tokenize'])(
    'asked for as %s, which is no address, is a 400 and reaches nothing',
    async (target) => {
      const client = openRaw(gateway.url);
      client.socket.write(
        `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.key}\r\nConnection: close\r\n\r\n`,
      );
      await eventually('it is answered', client.isClosed);
      expect(client.text()).toMatch(/^HTTP\/1\.1 400 /);
      expect(client.text()).toContain('"code":"invalid_value"');
      expect(upstream.seen).toEqual([]);
    },
  );

  test.each([
    ['/tokenize#part', '/tokenize'],
    ['/tokenize?a=1#part?b', '/tokenize?a=1'],
    ['http://elsewhere.test/tokenize?a=1#part', '/tokenize?a=1'],
  ])('asked for as %s reaches the upstream as %s, without the fragment', async (target, path) => {
    upstream.play((response) => void response.end('x'));
    const client = openRaw(gateway.url);
    client.socket.write(
      `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.key}\r\nConnection: close\r\n\r\n`,
    );
    await eventually('it is answered', client.isClosed);
    expect(client.text()).toMatch(/^HTTP\/1\.1 200 /);
    expect(upstream.seen.map((seen) => seen.path)).toEqual([path]);
  });

  test('is refused a body that is framed in a way that others may read otherwise', async () => {
    expect(await askRaw({ headers: { 'transfer-encoding': 'gzip, chunked' } })).toBe(400);
    expect(upstream.seen).toEqual([]);
  });

  test('whose client is slow to read makes the upstream wait, and is no silence of the upstream', async () => {
    const size = 20_000_000;
    upstream.play((response) => void response.end(Buffer.alloc(size)));
    const { hostname, port } = new URL(gateway.url);
    const headers = { authorization: `Bearer ${gateway.key}` };
    const sent = sendRequest({ hostname, port, path: '/tokenize', headers }).end();
    const answer = await new Promise<IncomingMessage>((resolve) => sent.once('response', resolve));
    await new Promise((resolve) => setTimeout(resolve, 700));
    let received = 0;
    answer.on('data', (chunk: Buffer) => (received += chunk.length));
    await new Promise((resolve) => answer.once('close', resolve));
    expect(received).toBe(size);
  });

  test('takes a slot of its key, and gives it back before the client sees the end', async () => {
    const held: ServerResponse[] = [];
    upstream.play((response) => void held.push(response));
    const waiting = [1, 2].map(() => gateway.post('/tokenize', '{}'));
    await eventually('both run', () => held.length === 2);
    expect((await gateway.post('/tokenize', '{}')).status).toBe(429);
    for (const response of held) response.end('x');
    for (const answer of waiting) await (await answer).text();
    upstream.play((response) => void response.end('x'));
    for (let time = 0; time < 20; time++) {
      const both = await Promise.all([1, 2].map(async () => (await gateway.post('/tokenize', '{}')).text()));
      expect(both).toEqual(['x', 'x']);
    }
  });

  test('streams both ways', async () => {
    upstream.play((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
      void gate.promise.then(() => response.end('data: 2\n\n'));
    });
    const gate = Promise.withResolvers<void>();
    const answer = readLive(gateway.post('/tokenize', '{}'));
    await eventually('the first piece is there', () => answer.text === 'data: 1\n\n');
    gate.resolve();
    await answer.ended;
    expect([answer.text, answer.broken]).toEqual(['data: 1\n\ndata: 2\n\n', false]);
  });

  test('that is asked to wait for a continue gets it once its key is known', async () => {
    upstream.play((response) => void response.end('x'));
    const { hostname, port } = new URL(gateway.url);
    const headers = {
      authorization: `Bearer ${gateway.key}`,
      expect: '100-continue',
      'content-type': 'text/plain',
    };
    const sent = sendRequest({ hostname, port, method: 'POST', path: '/tokenize', headers });
    sent.flushHeaders();
    await new Promise((resolve) => sent.once('continue', resolve));
    sent.end('hello');
    await new Promise((resolve) =>
      sent.once('response', (response) => response.resume().once('end', resolve)),
    );
    expect(upstream.seen[0]?.body).toBe('hello');
    expect(upstream.seen[0]?.headers.expect).toBeUndefined();
  });

  test.each([
    ['with a length', (size: number) => 'x'.repeat(size)],
    ['without a length', (size: number) => new Blob(['x'.repeat(size)]).stream()],
  ])('is refused a body that is too large, %s', async (_name, bodyOf) => {
    upstream.play((response) => void response.end('x'));
    const post = (size: number): Promise<Response> =>
      fetch(`${gateway.url}/tokenize`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.key}` },
        body: bodyOf(size),
        duplex: 'half',
      });
    expect((await post(65_536)).status).toBe(200);
    const refused = await post(65_537);
    expect(refused.status).toBe(413);
    expect(await refused.json()).toMatchObject({ error: { code: 'request_too_large' } });
  });
});

describe('a passed-on request that fails', () => {
  test('because the upstream can’t be reached is a 502 in our envelope', async () => {
    upstream.play((response) => void response.destroy());
    const response = await gateway.post('/tokenize', '{}');
    expect(response.status).toBe(502);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ error: { code: 'upstream_unavailable' } });
    expect(text).not.toContain(new URL(upstream.url).host);
    expect(await lastRecord()).toMatchObject({ outcome: 'upstream_failed', status: 502 });
  });

  test.each(['HTTP/1.1 099 X', 'HTTP/1.1 000 X', 'HTP/1.1 200 OK', '\x16\x03\x01'])(
    'because the upstream’s answer begins with %j is a 502, and harms nobody else',
    async (line) => {
      upstream.play((response) => void response.socket?.end(`${line}\r\ncontent-length: 1\r\n\r\nx`));
      expect((await gateway.post('/tokenize', '{}')).status).toBe(502);
      upstream.play((response) => void response.end('x'));
      expect((await gateway.post('/tokenize', '{}')).status).toBe(200);
    },
  );

  test.each([
    [404, 'refused'],
    [429, 'rate_limited'],
    [503, 'error'],
    [529, 'overloaded'],
  ])(
    'because the upstream answers %i says so, is noted as %s, and is no verdict on its health',
    async (status, result) => {
      upstream.play((response) => void response.writeHead(status).end('no'));
      for (let time = 0; time < 6; time++)
        expect((await gateway.post('/tokenize', '{}')).status).toBe(status);
      expect((await lastRecord()).attempts).toMatchObject([{ result }]);
      const ready = await (await fetch(`${gateway.adminUrl}/readyz`)).json();
      expect(ready).toMatchObject({ upstreams: { local: 'ok' } });
    },
  );

  test.each([
    [
      'with an upgrade',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    ],
    ['without one', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
  ])(
    'because the upstream switches protocols %s is a 502 at once, and its slot is free',
    async (_name, head) => {
      upstream.play((response) => void response.socket?.write(head));
      expect((await gateway.post('/tokenize', '{}')).status).toBe(502);
      expect(await inFlight()).toEqual([]);
      expect(await lastRecord()).toMatchObject({ outcome: 'upstream_failed', status: 502 });
    },
  );

  test.each([401, 402, 403])(
    'because the upstream answers %i about the gateway’s own key is a 502 that quotes nothing of it',
    async (status) => {
      const body = '{"message":"Incorrect API key provided: sk-upstream-secret"}';
      const head = {
        'content-type': 'application/json',
        'www-authenticate': 'Bearer realm="sk-upstream-secret"',
      };
      upstream.play((response) => void response.writeHead(status, head).end(body));
      const response = await gateway.post('/tokenize', '{}');
      expect(response.status).toBe(502);
      expect([...response.headers].join()).not.toContain('sk-upstream-secret');
      const text = await response.text();
      expect(text).not.toContain('Incorrect');
      expect(JSON.parse(text)).toMatchObject({ error: { code: 'upstream_auth' } });
      expect(await lastRecord()).toMatchObject({
        outcome: 'upstream_failed',
        status: 502,
        attempts: [{ result: 'auth' }],
      });
      expect(log).toContainEqual(
        expect.objectContaining({
          level: 50,
          msg: 'an upstream does not accept its apiKey',
          cause: `status ${status}`,
        }),
      );
    },
  );

  test('because the upstream says nothing is a 504', async () => {
    upstream.play(() => {});
    expect((await gateway.post('/tokenize', '{}')).status).toBe(504);
    await eventually('the call is gone', () => upstream.running === 0);
  });

  test.each([
    ['breaks off', (response: ServerResponse) => void setTimeout(() => response.destroy(), 10)],
    ['resets', (response: ServerResponse) => void setTimeout(() => response.socket?.resetAndDestroy(), 10)],
    ['stalls', () => {}],
  ])(
    'because its answer %s is broken for the client, too: no error text, no proper end',
    async (_name, cut) => {
      upstream.play((response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
        cut(response);
      });
      const answer = readLive(gateway.post('/tokenize', '{}'));
      await answer.ended;
      expect([answer.text, answer.broken]).toEqual(['data: 1\n\n', true]);
      expect((await lastRecord()).outcome).not.toBe('completed');
      expect(await inFlight()).toEqual([]);
    },
  );

  test('because its client left stops the upstream, and leaves nothing behind', async () => {
    upstream.play((response) => void response.writeHead(200).write('x'));
    const leaving = new AbortController();
    const response = await gateway.post('/tokenize', '{}', { signal: leaving.signal });
    expect(response.status).toBe(200);
    leaving.abort();
    await eventually('the call is gone', () => upstream.running === 0);
    await eventually('nothing runs', async () => (await inFlight()).length === 0);
    expect(await lastRecord()).toMatchObject({ outcome: 'client_closed' });
  });
});

describe('a path for keys with a balance', () => {
  /** A key with so much, and what it can do. */
  const makeKey = async (balanceNanos: number) => {
    const { key, secret } = await gateway.gateway.createKey('payer', { balanceNanos });
    const headers = { authorization: `Bearer ${secret}` };
    return {
      post: (path: string, signal: AbortSignal | null = null) =>
        gateway.post(path, '{}', { headers, signal }),
      account: async () => (await askAdmin(gateway, 'GET', `/keys/${key.id}`)).body,
    };
  };

  test('is refused where it has no price, and takes other keys for nothing', async () => {
    upstream.play((response) => void response.end('x'));
    const { post, account } = await makeKey(1_000_000_000);
    const refused = await post('/tokenize');
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({
      error: { code: 'model_not_allowed', message: expect.stringContaining('has no price') },
    });
    expect(upstream.seen).toEqual([]);
    expect((await gateway.post('/tokenize', '{}')).status).toBe(200);
    expect(await account()).toMatchObject({ balance: '1.00', spent: '0.00' });
  });

  test('costs nothing where it is free, even with nothing left', async () => {
    upstream.play((response) => void response.end('x'));
    const { post, account } = await makeKey(0);
    expect((await post('/health')).status).toBe(200);
    expect(await account()).toMatchObject({ balance: '0.00', held: '0.00', spent: '0.00' });
  });

  test('costs its price per request, which the record shows, and is refused without it', async () => {
    upstream.play((response) => void response.end('x'));
    const { post, account } = await makeKey(1_500_000);
    for (const status of [200, 200, 402]) {
      const response = await post('/rerank');
      expect(response.status).toBe(status);
      await response.text();
    }
    expect(upstream.seen).toHaveLength(2);
    expect(await account()).toMatchObject({ balance: '-0.0005', held: '0.00', spent: '0.002' });
    expect(await lastRecord()).toMatchObject({ charge: '0.001', price: { request: '0.001', input: '0.00' } });
    expect((await askAdmin(gateway, 'GET', '/ledger')).body).toMatchObject({ faults: [] });
  });

  test.each([302, 204])('costs its price for a %i', async (status) => {
    upstream.play((response) => void response.writeHead(status).end());
    const { post, account } = await makeKey(1_000_000_000);
    await (await post('/rerank')).text();
    expect(await account()).toMatchObject({ held: '0.00', spent: '0.001' });
  });

  test.each<[string, Parameters<typeof upstream.play>[0]]>([
    ['answers 404', (response) => void response.writeHead(404).end('no')],
    ['answers 500', (response) => void response.writeHead(500).end('no')],
    ['answers 401', (response) => void response.writeHead(401).end('no')],
    ['hangs up', (response) => void response.destroy()],
    ['says nothing', () => {}],
    [
      'breaks off',
      (response) => void response.writeHead(200).write('x', () => response.socket?.resetAndDestroy()),
    ],
  ])('costs nothing where the upstream %s', async (_name, script) => {
    upstream.play(script);
    const { post, account } = await makeKey(1_000_000_000);
    await readLive(post('/rerank')).ended;
    expect(await account()).toMatchObject({ balance: '1.00', held: '0.00', spent: '0.00' });
    expect((await askAdmin(gateway, 'GET', '/ledger')).body).toMatchObject({ faults: [] });
  });

  test('costs its price though its client reads so slowly that time is up before the end of a good answer', async () => {
    upstream.play((response) => void response.writeHead(200).end(Buffer.alloc(32 << 20)));
    const { key, secret } = await gateway.gateway.createKey('payer', { balanceNanos: 1_000_000_000 });
    const client = openRaw(gateway.url, { paused: true });
    client.socket.write(rawPost('/rerank', secret, {}));
    const isOver = async (): Promise<boolean> => {
      const { data } = (await askAdmin(gateway, 'GET', `/records?limit=1&key=${key.id}`)).body;
      return data[0]?.outcome === 'total_timeout';
    };
    await eventually('time is up', isOver, 60_000);
    const { body } = await askAdmin(gateway, 'GET', `/keys/${key.id}`);
    expect(body).toMatchObject({ held: '0.00', spent: '0.001' });
    expect((await askAdmin(gateway, 'GET', '/ledger')).body).toMatchObject({ faults: [] });
  });

  test('costs its price though the client leaves before the end of a good answer', async () => {
    upstream.play((response) => void response.writeHead(200).write('x'));
    const { post, account } = await makeKey(1_000_000_000);
    const leaving = new AbortController();
    await post('/rerank', leaving.signal);
    leaving.abort();
    await eventually('nothing runs', async () => (await inFlight()).length === 0);
    expect(await account()).toMatchObject({ held: '0.00', spent: '0.001' });
    expect((await askAdmin(gateway, 'GET', '/ledger')).body).toMatchObject({ faults: [] });
  });
});

import { once } from 'node:events';
import { request as sendRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { readLive } from '../support/live-answer.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;
/** All lines of the log, parsed. */
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

/** Sends a request that `fetch` can't send; resolves with the status. */
function askRaw({ path = '/tokenize', headers = {} }: { path?: string; headers?: object }): Promise<unknown> {
  const { hostname, port } = new URL(gateway.url);
  const all = { authorization: `Bearer ${gateway.key}`, ...headers };
  const sent = sendRequest({ hostname, port, method: 'POST', path, headers: all });
  sent.end();
  return new Promise((resolve) => sent.once('response', (response) => resolve(response.resume().statusCode)));
}

/** What it reads once that is the same for many turns of the event loop, in which upstream, gateway and client all run. */
async function atRest(read: () => number): Promise<number> {
  let [last, turns] = [read(), 0];
  while (turns < 3_000) {
    await nextTurn();
    const found = read();
    turns = found === last ? turns + 1 : 0;
    last = found;
  }
  return last;
}

describe('a passthrough answer', () => {
  test.each([500, 502, 503])(
    'with status %i arrives complete, although it counts as a failure',
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
    'without a body (%s) ends for its client after the settlement, and not before',
    async (_name, status, head) => {
      upstream.play((response) => void response.writeHead(status, head).end());
      expect((await gateway.post('/tokenize', '{}')).status).toBe(status);
      expect(await inFlight()).toEqual([]);
      expect(await lastRecord()).toMatchObject({ outcome: 'completed' });
    },
  );
});

test('a passthrough answer that breaks off behind an earlier one closes their connection once that one is sent', async () => {
  const goOn = Promise.withResolvers<void>();
  let played = 0;
  upstream.play(async (response) => {
    if (++played === 1) {
      await goOn.promise;
      return void response.end('first');
    }
    response.write('half of the second');
    setImmediate(() => response.destroy());
  });
  const patient = await startGateway({
    upstreamUrl: upstream.url,
    passthrough: [{ path: '/tokenize', upstream: 'local' }],
  });
  onTestFinished(() => patient.close());
  onTestFinished(() => goOn.resolve());
  const running = async () => (await patient.gateway.inFlight()).data;
  const client = openRaw(patient.url);
  client.socket.write(rawPost('/tokenize', patient.key, {}).repeat(3));
  // The third one is refused, which is to be sent behind the first one.
  await eventually('the second one is over', async () => played > 1 && (await running()).length === 2);
  goOn.resolve();
  await eventually('the connection is closed', client.isClosed);
  // The second one has no end, and the third one could be taken for it.
  expect(client.text()).toMatch(/first\r\n0\r\n\r\nHTTP\/1\.1 200 OK\r\n[^]*half of the second\r\n$/);
  expect(await running()).toEqual([]);
});

describe('a passthrough path', () => {
  test('sends the request to the upstream unchanged, and the answer to the client', async () => {
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

  test('passes a compressed answer on as it is, even a broken one, and charges it', async () => {
    const encoded = gzipSync('{"tokens":[1]}');
    for (const bytes of [encoded, encoded.subarray(0, 12)]) {
      upstream.play((response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bytes));
      const { hostname, port } = new URL(gateway.url);
      const headers = { authorization: `Bearer ${gateway.key}`, 'content-length': '2' };
      const sent = sendRequest({ hostname, port, method: 'POST', path: '/rerank', headers }).end('{}');
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      expect(answer.headers['content-encoding']).toBe('gzip');
      expect(Buffer.concat(await answer.toArray())).toEqual(bytes);
      expect(await lastRecord()).toMatchObject({ outcome: 'completed', charge: '0.001' });
    }
  });

  test('records a request without tokens and without a charge', async () => {
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

  test('does not include other paths, neither below it nor beside it', async () => {
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

  test('is refused to a key with a list of models without the path', async () => {
    const { secret: listed } = await gateway.gateway.createKey('x', { models: ['small'] });
    const { secret: allowed } = await gateway.gateway.createKey('x', { models: ['small', '/tokenize'] });
    upstream.play((response) => void response.end('x'));
    const statusWith = async (key: string): Promise<number> =>
      (await gateway.post('/tokenize', '{}', { headers: { authorization: `Bearer ${key}` } })).status;
    expect([await statusWith(listed), await statusWith(allowed)]).toEqual([403, 200]);
  });

  test('refuses TRACE, whose answer would show the upstream’s key', async () => {
    upstream.play((response, { headers }) => void response.end(JSON.stringify(headers)));
    const { hostname, port } = new URL(gateway.url);
    const headers = { authorization: `Bearer ${gateway.key}` };
    const sent = sendRequest({ hostname, port, method: 'TRACE', path: '/tokenize', headers }).end();
    const status = await new Promise((resolve) =>
      sent.once('response', (response) => resolve(response.resume().statusCode)),
    );
    expect([status, upstream.seen]).toEqual([405, []]);
  });

  test('is served although its upstream closes its connections, without an effect on the upstream’s health', async () => {
    upstream.play((response) => {
      response.end('x');
      setImmediate(() => response.socket?.destroy());
    });
    for (let time = 0; time < 20; time++) expect((await gateway.post('/tokenize', '{}')).status).toBe(200);
    const ready = await (await fetch(`${gateway.adminUrl}/readyz`)).json();
    expect(ready).toMatchObject({ upstreams: { local: { state: 'unknown' } } });
  });

  test('sends only the path to the upstream when the request line has a whole address', async () => {
    upstream.play((response) => void response.end('x'));
    expect(await askRaw({ path: 'http://elsewhere.test/tokenize?a=1' })).toBe(200);
    expect(upstream.seen[0]?.path).toBe('/tokenize?a=1');
    expect(upstream.seen[0]?.headers.host).toBe(new URL(upstream.url).host);
  });

  test.each(['http://evil:99999/tokenize', 'http://[x]/tokenize'])(
    'answers 400 to the invalid address %s without an upstream call',
    async (target) => {
      const client = openRaw(gateway.url);
      client.socket.write(
        `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.key}\r\nConnection: close\r\n\r\n`,
      );
      await eventually('the answer has arrived', client.isClosed);
      expect(client.text()).toMatch(/^HTTP\/1\.1 400 /);
      expect(client.text()).toContain('"code":"invalid_value"');
      expect(upstream.seen).toEqual([]);
    },
  );

  test.each([
    ['/tokenize#part', 400, []],
    ['/tokenize?a=1#part?b', 400, []],
    ['http://elsewhere.test/tokenize?a=1#part', 400, []],
    ['http://elsewhere.test/tokenize?a=1', 200, ['/tokenize?a=1']],
  ])('requested as %s is answered with %i: a fragment is refused', async (target, status, paths) => {
    upstream.play((response) => void response.end('x'));
    const client = openRaw(gateway.url);
    client.socket.write(
      `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.key}\r\nConnection: close\r\n\r\n`,
    );
    await eventually('the answer has arrived', client.isClosed);
    expect(client.text()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(upstream.seen.map((seen) => seen.path)).toEqual(paths);
  });

  test('refuses a body whose framing parsers read differently', async () => {
    expect(await askRaw({ headers: { 'transfer-encoding': 'gzip, chunked' } })).toBe(400);
    expect(upstream.seen).toEqual([]);
  });

  test('makes the upstream wait for a slow client, which does not count as silence of the upstream', async () => {
    const clock = createFakeClock();
    const idleMs = 300;
    const timed = await startGateway({
      clock,
      upstreamUrl: upstream.url,
      timeouts: { firstByte: '1h', idle: `${idleMs}ms`, total: '1h' },
      passthrough: [{ path: '/tokenize', upstream: 'local' }],
    });
    onTestFinished(() => timed.close());
    const size = 20_000_000;
    const sending: ServerResponse[] = [];
    upstream.play((response) => void sending.push(response.end(Buffer.alloc(size))));
    const { hostname, port } = new URL(timed.url);
    const headers = { authorization: `Bearer ${timed.key}` };
    const sent = sendRequest({ hostname, port, path: '/tokenize', headers }).end();
    const answer = await new Promise<IncomingMessage>((resolve) => sent.once('response', resolve));
    const left = await atRest(() => sending[0]?.writableLength ?? 0);
    expect(left).toBeGreaterThan(0);
    for (let times = 0; times < 10; times++) clock.advance(idleMs);
    let received = 0;
    answer.on('data', (chunk: Buffer) => (received += chunk.length));
    await new Promise((resolve) => answer.once('close', resolve));
    expect(received).toBe(size);
  });

  test('uses a slot of its key, and frees it before the client reads the end', async () => {
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
    await eventually('the first piece has arrived', () => answer.text === 'data: 1\n\n');
    gate.resolve();
    await answer.ended;
    expect([answer.text, answer.broken]).toEqual(['data: 1\n\ndata: 2\n\n', false]);
  });

  test('sends 100 Continue to a client that expects it when its key is accepted', async () => {
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
  ])('refuses a body that is too large, %s', async (_name, bodyOf) => {
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

describe('a passthrough request that fails', () => {
  test('gets 502 in the gateway’s envelope when the upstream can’t be reached', async () => {
    upstream.play((response) => void response.destroy());
    const response = await gateway.post('/tokenize', '{}');
    expect(response.status).toBe(502);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ error: { code: 'upstream_unavailable' } });
    expect(text).not.toContain(new URL(upstream.url).host);
    expect(await lastRecord()).toMatchObject({ outcome: 'upstream_failed', status: 502 });
  });

  test.each(['HTTP/1.1 099 X', 'HTTP/1.1 000 X', 'HTP/1.1 200 OK', '\x16\x03\x01'])(
    'gets 502 when the upstream’s answer begins with %j, without an effect on other requests',
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
    'gets the upstream’s status %i, is recorded as %s, and does not affect the upstream’s health',
    async (status, result) => {
      upstream.play((response) => void response.writeHead(status).end('no'));
      for (let time = 0; time < 6; time++)
        expect((await gateway.post('/tokenize', '{}')).status).toBe(status);
      expect((await lastRecord()).attempts).toMatchObject([{ result }]);
      const ready = await (await fetch(`${gateway.adminUrl}/readyz`)).json();
      expect(ready).toMatchObject({ upstreams: { local: { state: 'unknown' } } });
    },
  );

  test.each([
    [
      'with an upgrade',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    ],
    ['without an upgrade', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
  ])(
    'gets 502 at once when the upstream switches protocols %s, and its slot is free',
    async (_name, head) => {
      upstream.play((response) => void response.socket?.write(head));
      expect((await gateway.post('/tokenize', '{}')).status).toBe(502);
      expect(await inFlight()).toEqual([]);
      expect(await lastRecord()).toMatchObject({ outcome: 'upstream_failed', status: 502 });
    },
  );

  test('gets 502 also when the body of an answer about the gateway’s own key never ends', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    upstream.play((response) => {
      response.once('close', () => resolve());
      response.writeHead(401, { 'content-type': 'application/json' }).write('{');
    });
    const response = await gateway.post('/tokenize', '{}');
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ error: { code: 'upstream_auth' } });
    await closed;
  });

  test.each([401, 402, 403])(
    'gets 502 without a quote of the answer when the upstream answers %i about the gateway’s own key',
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
          msg: 'upstream rejected its API key',
          cause: `status ${status}`,
        }),
      );
    },
  );

  test('gets 504 when the upstream is silent', async () => {
    upstream.play(() => {});
    expect((await gateway.post('/tokenize', '{}')).status).toBe(504);
    await eventually('the call is over', () => upstream.running === 0);
  });

  test.each([
    ['breaks off', (response: ServerResponse) => void setTimeout(() => response.destroy(), 10)],
    ['resets', (response: ServerResponse) => void setTimeout(() => response.socket?.resetAndDestroy(), 10)],
    ['stalls', () => {}],
  ])(
    'is broken off for the client, without an error text or a proper end, when the answer %s',
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

  test('aborts the upstream call when its client disconnects, and leaves nothing behind', async () => {
    upstream.play((response) => void response.writeHead(200).write('x'));
    const leaving = new AbortController();
    const response = await gateway.post('/tokenize', '{}', { signal: leaving.signal });
    expect(response.status).toBe(200);
    leaving.abort();
    await eventually('the call is over', () => upstream.running === 0);
    await eventually('no request is in progress', async () => (await inFlight()).length === 0);
    expect(await lastRecord()).toMatchObject({ outcome: 'client_closed' });
  });
});

test.each(['whose end follows', 'with more text'])(
  'a client that closes its side of the connection gets the rest of a passthrough answer %s, in good chunks',
  async (rest) => {
    const more = rest === 'with more text' ? 'and the rest' : '';
    const gate = Promise.withResolvers<void>();
    upstream.play((response) => {
      response.writeHead(200).write('begun');
      void gate.promise.then(() => response.end(more));
    });
    const client = openRaw(gateway.url);
    client.socket.write(rawPost('/tokenize', gateway.key, {}));
    await eventually('the answer has begun', () => client.text().endsWith('begun\r\n'));
    client.socket.end();
    await eventually('it is found out whether the client reads', () => client.text().endsWith('begun\r\n0'));
    gate.resolve();
    await eventually('the connection is closed', () => client.socket.destroyed);
    const [, body = ''] = client.text().split(/\r\n\r\n(5\r\n[^]*)/);
    expect(body).toBe(
      `5\r\nbegun\r\n${more === '' ? '' : `0c\r\n${more}\r\n`}${more === '' ? '00' : '0'}\r\n\r\n`,
    );
  },
);

test('a client that disconnects within its body ends the passthrough call as one that left', async () => {
  const client = openRaw(gateway.url);
  client.socket.write(
    `POST /tokenize HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.key}\r\nContent-Length: 100\r\n\r\nhalf`,
  );
  await eventually('it is in progress', async () => (await upstream.connections()) === 1);
  client.socket.destroy();
  await eventually('no request is in progress', async () => (await inFlight()).length === 0);
  expect(await lastRecord()).toMatchObject({ outcome: 'client_closed' });
  await eventually('the call is over', async () => (await upstream.connections()) === 0);
});

describe('a passthrough path used by keys with a balance', () => {
  /** A key with this balance, and functions for its requests. */
  const makeKey = async (balanceNanos: number) => {
    const { key, secret } = await gateway.gateway.createKey('payer', { balanceNanos });
    const headers = { authorization: `Bearer ${secret}` };
    return {
      post: (path: string, signal: AbortSignal | null = null) =>
        gateway.post(path, '{}', { headers, signal }),
      account: async () => (await askAdmin(gateway, 'GET', `/keys/${key.id}`)).body,
    };
  };

  test('is refused without a price, but free for keys without a balance', async () => {
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

  test('costs nothing when it is free, even without money left', async () => {
    upstream.play((response) => void response.end('x'));
    const { post, account } = await makeKey(0);
    expect((await post('/health')).status).toBe(200);
    expect(await account()).toMatchObject({ balance: '0.00', held: '0.00', spent: '0.00' });
  });

  test('costs its price per request, as recorded, and is refused when the balance does not cover it', async () => {
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

  test.each([302, 204])('costs its price for a status %i', async (status) => {
    upstream.play((response) => void response.writeHead(status).end());
    const { post, account } = await makeKey(1_000_000_000);
    await (await post('/rerank')).text();
    expect(await account()).toMatchObject({ held: '0.00', spent: '0.001' });
  });

  test.each<[string, Parameters<typeof upstream.play>[0]]>([
    ['answers 404', (response) => void response.writeHead(404).end('no')],
    ['answers 500', (response) => void response.writeHead(500).end('no')],
    ['answers 401', (response) => void response.writeHead(401).end('no')],
    ['closes the connection', (response) => void response.destroy()],
    ['is silent', () => {}],
    [
      'breaks off',
      (response) => void response.writeHead(200).write('x', () => response.socket?.resetAndDestroy()),
    ],
  ])('costs nothing when the upstream %s', async (_name, script) => {
    upstream.play(script);
    const { post, account } = await makeKey(1_000_000_000);
    await readLive(post('/rerank')).ended;
    expect(await account()).toMatchObject({ balance: '1.00', held: '0.00', spent: '0.00' });
    expect((await askAdmin(gateway, 'GET', '/ledger')).body).toMatchObject({ faults: [] });
  });

  test('costs its price when a slow client exceeds the time limit within a good answer', async () => {
    upstream.play((response) => void response.writeHead(200).end(Buffer.alloc(32 << 20)));
    const clock = createFakeClock();
    const timed = await startGateway({
      clock,
      upstreamUrl: upstream.url,
      timeouts: { firstByte: '2s', idle: '2s', total: '2s' },
      passthrough: [{ path: '/rerank', upstream: 'local', price: { request: '0.001' } }],
    });
    onTestFinished(() => timed.close());
    const { key, secret } = await timed.gateway.createKey('payer', { balanceNanos: 1_000_000_000 });
    const client = openRaw(timed.url, { paused: true });
    client.socket.write(rawPost('/rerank', secret, {}));
    await eventually('the answer has begun', () => client.socket.bytesRead > 0);
    clock.advance(2_000);
    const isOver = async (): Promise<boolean> => {
      const { data } = (await askAdmin(timed, 'GET', `/records?limit=1&key=${key.id}`)).body;
      return data[0]?.outcome === 'total_timeout';
    };
    await eventually('time is up', isOver);
    const { body } = await askAdmin(timed, 'GET', `/keys/${key.id}`);
    expect(body).toMatchObject({ held: '0.00', spent: '0.001' });
    expect((await askAdmin(timed, 'GET', '/ledger')).body).toMatchObject({ faults: [] });
  });

  test('costs its price when the client disconnects within a good answer', async () => {
    upstream.play((response) => void response.writeHead(200).write('x'));
    const { post, account } = await makeKey(1_000_000_000);
    const leaving = new AbortController();
    await post('/rerank', leaving.signal);
    leaving.abort();
    await eventually('no request is in progress', async () => (await inFlight()).length === 0);
    expect(await account()).toMatchObject({ held: '0.00', spent: '0.001' });
    expect((await askAdmin(gateway, 'GET', '/ledger')).body).toMatchObject({ faults: [] });
  });
});

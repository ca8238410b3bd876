import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { LookupFunction, AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import type { UpstreamAnswer, UpstreamFault } from '../../src/domain/ports/upstreams.ts';
import { LongBody, createHttpUpstream } from '../../src/transport/http-upstream.ts';
import type { HttpUpstreamOptions } from '../../src/transport/http-upstream.ts';
import type { Upstream } from '../../src/transport/upstreams.ts';
import { eventually } from '../support/eventually.ts';
import { startTlsServer } from '../support/tls-server.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const open: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function listen(handler: RequestListener, host = '127.0.0.1', port = 0): Promise<Server> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  open.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return server;
}

const portOf = (server: Pick<Server, 'address'>): number => (server.address() as AddressInfo).port;

function connect(url: string, options: Partial<HttpUpstreamOptions> = {}, clock = systemClock): Upstream {
  const upstream = createHttpUpstream(
    {
      url: new URL(url),
      headers: () => ({}),
      connectMs: 1_000,
      allowLinkLocal: false,
      learnsLimits: false,
      deadlines: { firstByteMs: 2_000, idleMs: 2_000, totalMs: 2_000 },
      ...options,
    },
    clock,
  );
  open.push(() => upstream.close());
  return upstream;
}

const { signal } = new AbortController();
const call = (upstream: Upstream, fresh = false): Promise<UpstreamAnswer | UpstreamFault> =>
  upstream.call(
    { upstream: 'x', method: 'POST', path: '/x', body: '{}', stream: false, leftMs: 60_000, fresh },
    signal,
  );
const textOf = async (answer: UpstreamAnswer | UpstreamFault): Promise<string> => {
  if ('fault' in answer) return answer.fault;
  const part = await answer.read();
  return part === null || 'fault' in part
    ? String(part?.fault)
    : `${answer.status} ${Buffer.from(part).toString()}`;
};

describe('a kept connection', () => {
  test('that the upstream closed without a byte is reported as stale, not as unreachable', async () => {
    let served = 0;
    const server = await listen((request, response) => {
      if (++served % 2 === 0) request.socket.destroy();
      else response.end('ok');
    });
    const upstream = connect(`http://127.0.0.1:${portOf(server)}/v1`);
    const seen: string[] = [];
    for (let time = 0; time < 6; time++) {
      seen.push(await textOf(await call(upstream)));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(seen).toEqual(['200 ok', 'stale', '200 ok', 'stale', '200 ok', 'stale']);
  });

  test('that the upstream ends with a 408 and a close is stale, but a 408 of a new one or without a close is an answer', async () => {
    let served = 0;
    const server = await listen((_request, response) => {
      served++;
      if (served === 1 || served === 4) return void response.end('ok');
      response.writeHead(408, served === 5 ? {} : { connection: 'close' }).end('late');
    });
    const upstream = connect(`http://127.0.0.1:${portOf(server)}/v1`);
    const seen: string[] = [];
    for (let time = 0; time < 5; time++) {
      seen.push(await textOf(await call(upstream)));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(seen).toEqual(['200 ok', 'stale', '408 late', '200 ok', '408 late']);
  });

  test('that the upstream ends with a 408 a second after it got the call has answered it: it is not asked again', async () => {
    const clock = { ...systemClock, monotonicMs: () => nowMs };
    let nowMs = 0;
    let served = 0;
    const server = await listen((_request, response) => {
      if (++served === 1) return void response.end('ok');
      nowMs += 1_000;
      response.writeHead(408, { connection: 'close' }).end('late');
    });
    const upstream = connect(`http://127.0.0.1:${portOf(server)}/v1`, {}, clock);
    expect(await textOf(await call(upstream))).toBe('200 ok');
    await new Promise((resolve) => setImmediate(resolve));
    expect(await textOf(await call(upstream))).toBe('408 late');
  });

  test('is not used for a call with `fresh`, whose own connection is closed after it', async () => {
    const ports = new Set<number | undefined>();
    const server = await listen((request, response) => {
      ports.add(request.socket.remotePort);
      response.end('ok');
    });
    const upstream = connect(`http://127.0.0.1:${portOf(server)}/v1`);
    for (const fresh of [false, false, true, true, false]) {
      expect(await textOf(await call(upstream, fresh))).toBe('200 ok');
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(ports.size).toBe(3);
    await eventually('only the kept one is open', async () => {
      const count = await new Promise((resolve) => server.getConnections((_error, found) => resolve(found)));
      return count === 1;
    });
  });

  test('is not assumed when a connection opened for the call is closed at once', async () => {
    const server = await listen((request) => void request.socket.destroy());
    const upstream = connect(`http://127.0.0.1:${portOf(server)}/v1`);
    expect([await textOf(await call(upstream)), await textOf(await call(upstream))]).toEqual([
      'unanswered',
      'unanswered',
    ]);
  });

  test('that closes in the middle of a response head is not reported as stale', async () => {
    let served = 0;
    const server = await listen((request, response) => {
      if (++served === 1) return void response.end('ok');
      request.socket.write('HTTP/1.1 200 OK\r\ncontent-');
      setImmediate(() => request.socket.destroy());
    });
    const upstream = connect(`http://127.0.0.1:${portOf(server)}/v1`);
    await textOf(await call(upstream));
    await new Promise((resolve) => setImmediate(resolve));
    expect(await textOf(await call(upstream))).toBe('unanswered');
  });
});

test('a limit that ends at a moment of the clock ends then, also where the answer has no date', async () => {
  const server = await listen((_request, response) => {
    response.sendDate = false;
    const limit = { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '0' };
    response.writeHead(200, { ...limit, 'x-ratelimit-reset': Math.ceil(Date.now() / 1_000) + 2 }).end('ok');
  });
  const answer = await call(connect(`http://127.0.0.1:${portOf(server)}/v1`, { learnsLimits: true }));
  if (answer.kind === 'fault') throw new Error(answer.fault);
  const [limit] = answer.limits ?? [];
  expect(limit?.resetMs).toBeGreaterThan(0);
  expect(limit?.resetMs).toBeLessThanOrEqual(3_000);
});

describe('a host name', () => {
  test('that moves to another address is followed', async () => {
    const first = await listen((_request, response) => void response.end('first'), '127.0.0.1');
    await listen((_request, response) => void response.end('second'), '127.0.0.2', portOf(first));
    let address = '127.0.0.1';
    const lookup: LookupFunction = (_hostname, options, callback) =>
      options.all ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4);
    const upstream = connect(`http://provider.test:${portOf(first)}/v1`, { lookup, maxConnectionAgeMs: 1 });
    expect(await textOf(await call(upstream))).toBe('200 first');
    address = '127.0.0.2';
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await textOf(await call(upstream))).toBe('200 second');
  });

  test.each(['169.254.169.254', 'fe80::1', '::ffff:169.254.169.254'])(
    'that resolves to %s is refused unless link-local addresses are allowed',
    async (address) => {
      const lookup: LookupFunction = (_hostname, options, callback) => {
        const family = address.includes(':') ? 6 : 4;
        return options.all ? callback(null, [{ address, family }]) : callback(null, address, family);
      };
      const refused = await call(connect('http://provider.test:1/v1', { lookup }));
      expect(refused).toMatchObject({ kind: 'fault', fault: 'unreachable' });
      expect(refused.kind === 'fault' && refused.cause).toContain('link-local');
      const allowed = await call(
        connect('http://provider.test:1/v1', { lookup, allowLinkLocal: true, connectMs: 50 }),
      );
      // Some networks answer at such an address.
      expect(allowed.kind === 'fault' ? allowed.cause : '').not.toContain('link-local address');
    },
  );
});

describe('a call', () => {
  test('carries our headers only, and the query of the base URL', async () => {
    const seen: unknown[] = [];
    const server = await listen((request, response) => {
      seen.push(request.url, request.headers);
      response.end('ok');
    });
    const base = `http://127.0.0.1:${portOf(server)}/openai/deployments/d?api-version=2024-10-21`;
    await call(connect(base, { headers: () => ({ 'api-key': 'secret' }) }));
    expect(seen).toEqual([
      '/openai/deployments/d/x?api-version=2024-10-21',
      {
        host: `127.0.0.1:${portOf(server)}`,
        connection: 'keep-alive',
        'accept-encoding': 'identity',
        'user-agent': 'textgate',
        'api-key': 'secret',
        accept: 'application/json',
        'content-type': 'application/json',
        'content-length': '2',
      },
    ]);
  });

  test('carries the key of its time, in every kind of call', async () => {
    const seen: unknown[] = [];
    const server = await listen(({ headers, method }, response) => {
      seen.push([headers['api-key'], headers.accept, headers['content-type'], headers.traceparent]);
      response.end(method);
    });
    let headers = { 'api-key': 'first' };
    const upstream = connect(`http://127.0.0.1:${portOf(server)}`, { headers: () => headers });
    const send = (stream: boolean, body: string | null, trace = {}) =>
      upstream.call(
        { upstream: 'x', method: 'POST', path: '/x', body, stream, leftMs: 60_000, fresh: false, trace },
        signal,
      );
    const [json, events] = ['application/json', 'text/event-stream'];
    await textOf(await send(false, '{}'));
    await textOf(await send(true, '{}', { traceparent: '00-1-2-03' }));
    await textOf(await send(true, '{}'));
    headers = { 'api-key': 'second' };
    await textOf(await send(true, '{}'));
    await textOf(await send(false, null));
    await textOf(await send(false, '{}'));
    expect(seen).toEqual([
      ['first', json, json, undefined],
      ['first', events, json, '00-1-2-03'],
      ['first', events, json, undefined],
      ['second', events, json, undefined],
      ['second', json, undefined, undefined],
      ['second', json, json, undefined],
    ]);
  });

  test.each([
    ['short', 'é'],
    ['long', 'é'.repeat(20_000)],
  ])('with a %s body sends it whole, with its length and its trace', async (_length, body) => {
    const seen: unknown[] = [];
    const server = await listen((request, response) => {
      let text = '';
      request.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      request.on('end', () => {
        const { 'content-length': length, 'transfer-encoding': coding, traceparent } = request.headers;
        seen.push([length, coding, traceparent, text === body]);
        response.end('ok');
      });
    });
    const upstream = connect(`http://127.0.0.1:${portOf(server)}`);
    const traces = [{}, { traceparent: '00-1-2-03' }];
    for (const stream of [true, false])
      for (const trace of traces)
        await textOf(
          await upstream.call(
            { upstream: 'x', method: 'POST', path: '/x', body, stream, leftMs: 60_000, fresh: false, trace },
            signal,
          ),
        );
    const length = String(2 * body.length);
    const plain = [length, undefined, undefined, true];
    const traced = [length, undefined, '00-1-2-03', true];
    expect(seen).toEqual([plain, traced, plain, traced]);
  });

  test('can send a long body once only', () => {
    const body = new LongBody('x');
    expect([...body]).toEqual(['x']);
    expect(() => [...body]).toThrow('asked for twice');
  });

  test('with a long body that the upstream refuses before it has read it gets the refusal', async () => {
    const server = await listen((_request, response) => response.writeHead(413).end('too long'));
    const upstream = connect(`http://127.0.0.1:${portOf(server)}`);
    const body = 'x'.repeat(8_000_000);
    const answer = await upstream.call(
      { upstream: 'x', method: 'POST', path: '/x', body, stream: true, leftMs: 60_000, fresh: false },
      signal,
    );
    expect(await textOf(answer)).toBe('413 too long');
    expect(await textOf(await call(upstream))).toBe('413 too long');
  });

  test('does not follow a redirect', async () => {
    const elsewhere: unknown[] = [];
    const other = await listen((request) => void elsewhere.push(request.url));
    const server = await listen((_request, response) =>
      response.writeHead(307, { location: `http://127.0.0.1:${portOf(other)}/` }).end('moved'),
    );
    expect(await textOf(await call(connect(`http://127.0.0.1:${portOf(server)}/v1`)))).toBe('307 moved');
    expect(elsewhere).toEqual([]);
  });

  test('resumes the TLS session of the connection before it, also after garbage was collected', async () => {
    const resumed: boolean[] = [];
    const server = await startTlsServer(({ socket }, response) => {
      resumed.push((socket as TLSSocket).isSessionReused());
      response.end('ok');
    });
    open.push(() => void server.close());
    const trusted = getCACertificates('default');
    setDefaultCACertificates([...trusted, server.certificate]);
    open.push(() => setDefaultCACertificates(trusted));
    const upstream = connect(`https://localhost:${portOf(server)}/v1`, { maxConnectionAgeMs: 1 });
    for (let time = 0; time < 3; time++) {
      expect(await textOf(await call(upstream))).toBe('200 ok');
      await new Promise((resolve) => setTimeout(resolve, 5));
      collectGarbage();
    }
    expect(await textOf(await call(upstream, true))).toBe('200 ok');
    expect(resumed).toEqual([false, true, true, true]);
  });

  test('to a server with an untrusted certificate fails', async () => {
    const server = await startTlsServer((_request, response) => void response.end('ok'));
    open.push(() => void server.close());
    const answer = await call(connect(`https://localhost:${portOf(server)}/v1`));
    expect(answer).toMatchObject({ kind: 'fault', fault: 'unreachable' });
    expect('cause' in answer && answer.cause).toMatch(/SELF_SIGNED|self-signed/);
  });
});

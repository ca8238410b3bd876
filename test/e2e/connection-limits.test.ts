import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import express from 'express';
import { afterEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import type { RawSocket } from '../support/raw-socket.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const keyless = 'GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n';
const anonymousAddress = '127.0.0.2';
const chat = '/v1/chat/completions';
const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };

/** How long a new connection is protected from eviction, in milliseconds. */
const settledMs = 1_000;

let gateway: TestGateway;
let closing: (() => Promise<void>)[] = [];
async function open(options: TestGatewayOptions): Promise<void> {
  gateway = await startGateway(options);
  closing.push(() => gateway.close());
}
afterEach(async () => {
  for (const close of closing) await close();
  closing = [];
});

const known = (): string =>
  `GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.key}\r\n\r\n`;

async function answered(client: RawSocket, status: number, request: string): Promise<void> {
  client.socket.write(request);
  await eventually('the answer has arrived', () => client.text().includes(`HTTP/1.1 ${status}`));
}

/** Opens a connection and waits until the listener has accepted it, so that later ones are newer. */
async function connected(from = anonymousAddress): Promise<RawSocket> {
  const client = openRaw(gateway.url, { from });
  await eventually('the connection is open', () => client.socket.readyState === 'open');
  await fetch(`${gateway.adminUrl}/healthz`);
  return client;
}

async function refused(reason: string): Promise<number> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  return Number(
    new RegExp(`^textgate_connections_refused_total\\{reason="${reason}"\\} (\\d+)$`, 'm').exec(text)?.[1],
  );
}

describe('a full listener', () => {
  test('evicts the longest idle connection without a key for a new connection', async () => {
    const clock = createFakeClock();
    await open({ server: { maxConnections: 3 }, clock });
    const first = await connected();
    const second = await connected();
    const third = await connected();
    clock.advance(settledMs);
    await answered(first, 401, keyless);
    const fourth = await connected();
    await eventually('the one that has been silent longest is closed', second.isClosed);
    await answered(fourth, 401, keyless);
    expect([first.isClosed(), third.isClosed()]).toEqual([false, false]);
    expect([await refused('evicted'), await refused('listener_full')]).toEqual([1, 0]);
  });

  test('protects new connections, whose requests may be on their way, and refuses the next one instead', async () => {
    const clock = createFakeClock();
    await open({ server: { maxConnections: 2 }, clock });
    const clients = [await connected(), await connected()];
    clock.advance(settledMs - 1);
    await eventually('the connection is refused', openRaw(gateway.url, { from: anonymousAddress }).isClosed);
    for (const client of clients) await answered(client, 401, keyless);
    expect([await refused('evicted'), await refused('listener_full')]).toEqual([0, 1]);
  });

  test('keeps idle connections with a known key while one without a key can be evicted', async () => {
    const clock = createFakeClock();
    await open({ server: { maxConnections: 3 }, clock });
    const clients = [await connected(), await connected()];
    for (const client of clients) await answered(client, 200, known());
    const silent = await connected();
    clock.advance(settledMs);
    await answered(await connected(), 401, keyless);
    expect([silent, ...clients].map((client) => client.isClosed())).toEqual([true, false, false]);
  });

  test('with known keys only evicts the longest idle connection, so that one client can’t keep others out', async () => {
    const clock = createFakeClock();
    await open({ server: { maxConnections: 4 }, clock });
    const clients = [await connected(), await connected(), await connected(), await connected()];
    for (const client of clients) await answered(client, 200, known());
    const closed = (): readonly boolean[] => clients.map((client) => client.isClosed());
    clock.advance(settledMs);
    const late = await connected('127.0.0.3');
    await eventually('the longest idle connection is closed', () => closed()[0] === true);
    await answered(late, 401, keyless);
    await answered(await connected('127.0.0.3'), 401, keyless);
    expect(closed()).toEqual([true, true, false, false]);
    // Connections without a key evict idle ones with a key only up to half of the listener.
    await eventually('a third one is refused', openRaw(gateway.url, { from: '127.0.0.3' }).isClosed);
    expect(closed()).toEqual([true, true, false, false]);
  });

  test('keeps a connection with a pending answer', async () => {
    const upstream = await startUpstream();
    closing.push(() => upstream.close());
    const gate = Promise.withResolvers<void>();
    upstream.play(async (response, request) => {
      await gate.promise;
      await sayTexts(['x'])(response, request);
    });
    await open({ upstreamUrl: upstream.url, server: { maxConnections: 1 } });
    const client = await connected();
    client.socket.write(rawPost(chat, gateway.key, body));
    await eventually('the upstream is asked', () => upstream.seen.length === 1);
    const late = openRaw(gateway.url, { from: anonymousAddress });
    await eventually('the new one is refused', late.isClosed);
    gate.resolve();
    await eventually('the answer is there', () => client.text().includes('"content":"x"'));
  });

  test('does not use up the connections of the admin listener', async () => {
    await open({ server: { maxConnections: 1 } });
    await answered(await connected(), 200, known());
    for (let probe = 0; probe < 20; probe++)
      expect((await fetch(`${gateway.adminUrl}/healthz`)).status).toBe(200);
  });

  test('logs its refusals as one line per ten seconds', async () => {
    const clock = createFakeClock();
    const lines: string[] = [];
    const logDestination = { write: (line: string) => void lines.push(line) };
    await open({ server: { maxConnections: 1 }, clock, logDestination });
    await answered(await connected(), 200, known());
    for (let late = 0; late < 5; late++)
      await eventually(
        'the connection is refused',
        openRaw(gateway.url, { from: anonymousAddress }).isClosed,
      );
    const summed = () => lines.filter((line) => line.includes('connections refused'));
    expect(summed()).toEqual([]);
    clock.advance(10_000);
    expect(summed().map((line) => (JSON.parse(line) as { counts: object }).counts)).toEqual([
      { listener_full: 5 },
    ]);
    clock.advance(60_000);
    expect(summed()).toHaveLength(1);
  });
});

describe('one address', () => {
  test('has a limited number of connections without a key: the longest idle one is evicted for the next', async () => {
    const clock = createFakeClock();
    await open({ server: { maxConnections: 100, maxAnonymousPerAddress: 2 }, clock });
    const [first, second] = [await connected(), await connected()];
    const other = await connected('127.0.0.3');
    clock.advance(settledMs);
    const third = await connected();
    await eventually('its first one is closed', first.isClosed);
    expect([second, third, other].map((client) => client.isClosed())).toEqual([false, false, false]);
  });

  test('is not limited while one of its connections has a known key, since it may be a proxy', async () => {
    await open({ server: { maxConnections: 100, maxAnonymousPerAddress: 2 } });
    await answered(await connected(), 200, known());
    const others = [];
    for (let count = 0; count < 20; count++) others.push(await connected());
    for (const client of others) await answered(client, 401, keyless);
    expect(others.filter((client) => client.isClosed())).toEqual([]);
  });

  test('is not limited for a while after its last connection with a known key has ended', async () => {
    const clock = createFakeClock();
    await open({ server: { maxConnections: 100, maxAnonymousPerAddress: 2 }, clock });
    const first = await connected();
    await answered(first, 200, known());
    first.socket.destroy();
    const others: RawSocket[] = [];
    for (let count = 0; count < 5; count++) others.push(await connected());
    for (const client of others) await answered(client, 401, keyless);
    clock.advance(600_000);
    await connected();
    await eventually('the longest idle connection is evicted', () =>
      others.some((client) => client.isClosed()),
    );
  });

  test('gets an answer on each of hundreds of simultaneous connections, as from a proxy after a restart', async () => {
    await open({ server: { maxConnections: 1_000 } });
    const clients = Array.from({ length: 400 }, () => openRaw(gateway.url, { from: anonymousAddress }));
    await eventually('they are open', () =>
      clients.every(({ socket }) => socket.readyState === 'open' || socket.destroyed),
    );
    // The listener accepts them one by one; the requests are sent when all are accepted.
    for (let turn = 0; turn < 1_000; turn++) await setImmediate();
    for (const client of clients) client.socket.write(known());
    await eventually(
      'all are answered or closed',
      () => clients.every((client) => client.isClosed() || client.text().includes('HTTP/1.1 200')),
      120_000,
    );
    expect(clients.filter((client) => !client.text().includes('HTTP/1.1 200'))).toHaveLength(0);
  }, 120_000);
});

describe('an idle connection', () => {
  test.each([
    ['without a known key is kept for five seconds', keyless, 401, 5],
    ['with a known key is kept longer than by load balancers', null, 200, 65],
  ])('%s, and its answer announces that', async (_name, request, status, seconds) => {
    await open({});
    const client = openRaw(gateway.url);
    await answered(client, status, request ?? known());
    expect(client.text()).toMatch(new RegExp(`\\r\\nkeep-alive: timeout=${seconds}\\r\\n`, 'i'));
  });

  test('without a known key is kept as long at an address with a known key, which may be a proxy', async () => {
    await open({});
    await answered(openRaw(gateway.url), 200, known());
    const client = openRaw(gateway.url);
    await answered(client, 401, keyless);
    expect(client.text()).toMatch(/\r\nkeep-alive: timeout=65\r\n/i);
  });

  test('without a known key is closed after five seconds', async () => {
    await open({});
    const client = openRaw(gateway.url);
    await answered(client, 401, keyless);
    await eventually('the connection is closed', client.isClosed, 60_000);
  }, 120_000);
});

test('the gateway does not manage the connections of an app that mounts its router', async () => {
  await open({ server: { maxConnections: 1, maxAnonymousPerAddress: 1 } });
  const server = createServer(express().use(gateway.gateway.router));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.unshift(async () => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clients = Array.from({ length: 10 }, () => openRaw(url));
  for (const client of clients) await answered(client, 401, keyless);
  for (const client of clients) await answered(client, 200, known());
  expect(clients.filter((client) => client.isClosed())).toEqual([]);
});

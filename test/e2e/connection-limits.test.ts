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
const stranger = '127.0.0.2';
const chat = '/v1/chat/completions';
const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };

/** How long after its beginning a connection may be closed to make room, in milliseconds. */
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
  await eventually('it is answered', () => client.text().includes(`HTTP/1.1 ${status}`));
}

/** A connection that the listener has taken in: those that come after it are newer. */
async function connected(from = stranger): Promise<RawSocket> {
  const client = openRaw(gateway.url, { from });
  await eventually('it is connected', () => client.socket.readyState === 'open');
  await fetch(`${gateway.adminUrl}/healthz`);
  return client;
}

async function refused(reason: string): Promise<number> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  return Number(
    new RegExp(`^textgate_connections_refused_total\\{reason="${reason}"\\} (\\d+)$`, 'm').exec(text)?.[1],
  );
}

describe('a listener that is full', () => {
  test('closes the connection without a key that has been idle longest in favour of a new one', async () => {
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

  test('closes no connection that is new, whose request may be on its way, and refuses the next one instead', async () => {
    const clock = createFakeClock();
    await open({ server: { maxConnections: 2 }, clock });
    const clients = [await connected(), await connected()];
    clock.advance(settledMs - 1);
    await eventually('it is refused', openRaw(gateway.url, { from: stranger }).isClosed);
    for (const client of clients) await answered(client, 401, keyless);
    expect([await refused('evicted'), await refused('listener_full')]).toEqual([0, 1]);
  });

  test('keeps the idle connections of known keys while one without a key can make room', async () => {
    const clock = createFakeClock();
    await open({ server: { maxConnections: 3 }, clock });
    const clients = [await connected(), await connected()];
    for (const client of clients) await answered(client, 200, known());
    const silent = await connected();
    clock.advance(settledMs);
    await answered(await connected(), 401, keyless);
    expect([silent, ...clients].map((client) => client.isClosed())).toEqual([true, false, false]);
  });

  test('of known keys alone closes the one that has been idle longest, so one client can’t keep others out', async () => {
    const clock = createFakeClock();
    await open({ server: { maxConnections: 4 }, clock });
    const clients = [await connected(), await connected(), await connected(), await connected()];
    for (const client of clients) await answered(client, 200, known());
    const closed = (): readonly boolean[] => clients.map((client) => client.isClosed());
    clock.advance(settledMs);
    const late = await connected('127.0.0.3');
    await eventually('the longest idle one is closed', () => closed()[0] === true);
    await answered(late, 401, keyless);
    await answered(await connected('127.0.0.3'), 401, keyless);
    expect(closed()).toEqual([true, true, false, false]);
    // Strangers take half of the listener at the most from clients that are idle.
    await eventually('a third one is refused', openRaw(gateway.url, { from: '127.0.0.3' }).isClosed);
    expect(closed()).toEqual([true, true, false, false]);
  });

  test('keeps a connection on which an answer is owed', async () => {
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
    const late = openRaw(gateway.url, { from: stranger });
    await eventually('the new one is refused', late.isClosed);
    gate.resolve();
    await eventually('the answer is there', () => client.text().includes('"content":"x"'));
  });

  test('leaves the admin listener its own connections', async () => {
    await open({ server: { maxConnections: 1 } });
    await answered(await connected(), 200, known());
    for (let probe = 0; probe < 20; probe++)
      expect((await fetch(`${gateway.adminUrl}/healthz`)).status).toBe(200);
  });

  test('sums what it refused into one line per ten seconds', async () => {
    const clock = createFakeClock();
    const lines: string[] = [];
    const logDestination = { write: (line: string) => void lines.push(line) };
    await open({ server: { maxConnections: 1 }, clock, logDestination });
    await answered(await connected(), 200, known());
    for (let late = 0; late < 5; late++)
      await eventually('it is refused', openRaw(gateway.url, { from: stranger }).isClosed);
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
  test('has only so many connections without a key: its longest silent one makes room for its next', async () => {
    const clock = createFakeClock();
    await open({ server: { maxConnections: 100, maxAnonymousPerAddress: 2 }, clock });
    const [first, second] = [await connected(), await connected()];
    const other = await connected('127.0.0.3');
    clock.advance(settledMs);
    const third = await connected();
    await eventually('its first one is closed', first.isClosed);
    expect([second, third, other].map((client) => client.isClosed())).toEqual([false, false, false]);
  });

  test('with a known key on one of its connections may be a proxy, and is not limited', async () => {
    await open({ server: { maxConnections: 100, maxAnonymousPerAddress: 2 } });
    await answered(await connected(), 200, known());
    const others = [];
    for (let count = 0; count < 20; count++) others.push(await connected());
    for (const client of others) await answered(client, 401, keyless);
    expect(others.filter((client) => client.isClosed())).toEqual([]);
  });

  test('at which a key was known lately is not limited after its connections have ended, and is in the end', async () => {
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
    await eventually('its longest silent one makes room', () => others.some((client) => client.isClosed()));
  });

  test('may open hundreds of connections at once, as behind a proxy after a restart, and each request is answered', async () => {
    await open({ server: { maxConnections: 1_000 } });
    const clients = Array.from({ length: 400 }, () => openRaw(gateway.url, { from: stranger }));
    await eventually('they are open', () =>
      clients.every(({ socket }) => socket.readyState === 'open' || socket.destroyed),
    );
    // The listener takes them in one after another; their requests come when it has all of them.
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
    ['without a known key is kept for seconds', keyless, 401, 5],
    ['with one is kept longer than load balancers do', null, 200, 65],
  ])('%s, and its client is told so', async (_name, request, status, seconds) => {
    await open({});
    const client = openRaw(gateway.url);
    await answered(client, status, request ?? known());
    expect(client.text()).toMatch(new RegExp(`\\r\\nkeep-alive: timeout=${seconds}\\r\\n`, 'i'));
  });

  test('without a known key is kept as long where a proxy may be: a key was known at its address', async () => {
    await open({});
    await answered(openRaw(gateway.url), 200, known());
    const client = openRaw(gateway.url);
    await answered(client, 401, keyless);
    expect(client.text()).toMatch(/\r\nkeep-alive: timeout=65\r\n/i);
  });

  test('without a known key is closed after those seconds', async () => {
    await open({});
    const client = openRaw(gateway.url);
    await answered(client, 401, keyless);
    await eventually('it is closed', client.isClosed, 60_000);
  }, 120_000);
});

test('an app that mounted the router keeps its connections as it likes', async () => {
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

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import express from 'express';
import type { RequestHandler } from 'express';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type * as storage from '../../src/storage/store.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { readRecords } from '../support/records.ts';
import { chatFrames, sayTexts, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
const streaming = { ...body, stream: true };

/** A promise for which the key look-ups wait. */
const lookUps = { wait: Promise.resolve() };
vi.mock(import('../../src/storage/store.ts'), async (importOriginal) => {
  const original = await importOriginal();
  const createStore: typeof storage.createStore = (...options) => {
    const store = original.createStore(...options);
    return { ...store, findKeyByHash: (hash) => lookUps.wait.then(() => store.findKeyByHash(hash)) };
  };
  return { ...original, createStore };
});

let upstream: ScriptedUpstream;
const sockets: Socket[] = [];
beforeEach(async () => {
  upstream = await startUpstream();
  upstream.play(sayTexts(['x']));
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await upstream.close();
});

/** Sends a request on a raw socket, so that it can be cut anywhere. */
function openSocket(url: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  sockets.push(socket);
  return socket;
}

function head(key: string, length: number): string {
  return (
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`
  );
}

/** Makes round trips through the same process, after which it has read everything sent before. */
async function otherTraffic(gateway: TestGateway): Promise<void> {
  for (let round = 0; round < 20; round++) await (await fetch(`${gateway.adminUrl}/healthz`)).text();
}

async function inFlight(gateway: TestGateway): Promise<number> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  return Number(/textgate_requests_in_flight\{protocol="chat"\} (\d+)/.exec(text)?.[1] ?? 0);
}

describe('a client that disconnects early', () => {
  test('during the look-up of its key frees its slot', async () => {
    const gateway = await startGateway({ upstreamUrl: upstream.url });
    const found = Promise.withResolvers<void>();
    lookUps.wait = found.promise;
    const leavers = Array.from({ length: 5 }, () => openSocket(gateway.url));
    for (const socket of leavers) socket.write(`${head(gateway.key, 100)}{`);
    await eventually('all have arrived', async () => (await inFlight(gateway)) === 5);
    for (const socket of leavers) socket.destroy();
    await otherTraffic(gateway);
    found.resolve();
    await eventually('none is left', async () => (await inFlight(gateway)) === 0);
    expect((await gateway.post('/v1/chat/completions', body)).status).toBe(200);
    expect(upstream.seen).toHaveLength(1);
    await gateway.close();
  });

  test('in the middle of its body frees its slot', async () => {
    const gateway = await startGateway({ upstreamUrl: upstream.url });
    const leavers = [openSocket(gateway.url), openSocket(gateway.url)];
    for (const socket of leavers) socket.write(`${head(gateway.key, 100)}{"model":`);
    await eventually('both are in progress', async () => (await inFlight(gateway)) === 2);
    await otherTraffic(gateway);
    expect((await gateway.post('/v1/chat/completions', body)).status).toBe(429);
    for (const socket of leavers) socket.destroy();
    await eventually('none is left', async () => (await inFlight(gateway)) === 0);
    expect((await gateway.post('/v1/chat/completions', body)).status).toBe(200);
    await gateway.close();
  });

  test('during a surrounding app’s own middleware is not served any more', async () => {
    const storage = join(makeTemporaryFolder(), 'textgate.db');
    const gateway = await startGateway({ upstreamUrl: upstream.url, storage });
    const arrived = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const slow: RequestHandler = async (_request, _response, next) => {
      arrived.resolve();
      await goOn.promise;
      next();
    };
    const server = createServer(express().use(express.json(), slow, gateway.gateway.router));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const text = JSON.stringify(body);
    const socket = openSocket(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    socket.write(head(gateway.key, text.length) + text);
    await arrived.promise;
    socket.destroy();
    await otherTraffic(gateway);
    goOn.resolve();
    await eventually('the request is over', async () => (await inFlight(gateway)) === 0);
    expect(upstream.seen).toEqual([]);
    expect(readRecords(storage)).toEqual([]);
    server.close();
    await gateway.close();
  });

  test('after text and usage is charged by that usage', async () => {
    const storage = join(makeTemporaryFolder(), 'textgate.db');
    const gateway = await startGateway({ upstreamUrl: upstream.url, storage });
    upstream.play((response) => void sendStream(response, chatFrames(['a', 'b']).slice(0, -1)));
    const leaving = new AbortController();
    const response = await gateway.post('/v1/chat/completions', streaming, { signal: leaving.signal });
    await response.body?.getReader().read();
    leaving.abort();
    await eventually('the record is settled', () => readRecords(storage)[0]?.outcome === 'client_closed');
    expect(readRecords(storage)).toMatchObject([
      { input_tokens: 11, output_tokens: 7, usage_source: 'upstream' },
    ]);
    await gateway.close();
  });
});

describe('a client that reads nothing', () => {
  test('does not delay draining, and its record is settled', async () => {
    const storage = join(makeTemporaryFolder(), 'textgate.db');
    const clock = createFakeClock();
    const gateway = await startGateway({ upstreamUrl: upstream.url, storage, clock });
    const long = chatFrames(Array.from({ length: 64 }, () => 'y'.repeat(100_000))).slice(0, -3);
    upstream.play((response) => void sendStream(response, long));
    const text = JSON.stringify(streaming);
    const socket = openSocket(gateway.url);
    socket.pause();
    socket.write(head(gateway.key, text.length) + text);
    await eventually('the upstream is asked', () => upstream.seen.length === 1);
    await gateway.recorded();
    await otherTraffic(gateway);
    const closed = gateway.close();
    await otherTraffic(gateway);
    clock.advance(25_000);
    await eventually('the record is settled', () => readRecords(storage)[0]?.outcome === 'drained');
    clock.advance(5_000);
    await closed;
  });
});

describe('an answer without any text', () => {
  test('opens and ends its stream once, in the metrics, too', async () => {
    const gateway = await startGateway({ upstreamUrl: upstream.url });
    upstream.play(sayTexts([], 'length'));
    const response = await gateway.post('/v1/chat/completions', streaming);
    expect(await response.text()).toMatch(/"finish_reason":"length"[^]*data: \[DONE\]\n\n$/);
    const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    expect(text).toContain('textgate_streams_open{protocol="chat"} 0');
    expect(text).toContain('textgate_stream_endings_total{protocol="chat",ending="incomplete"} 1');
    await gateway.close();
  });
});

describe('an unusual head of an upstream’s answer', () => {
  test('with two content types is read by the first one, and does not hang', async () => {
    const gateway = await startGateway({ upstreamUrl: upstream.url });
    upstream.play((response) => {
      response.setHeader('content-type', ['application/json', 'text/plain']);
      response.end('{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}');
    });
    expect((await gateway.post('/v1/chat/completions', body)).status).toBe(200);
    upstream.play((response) => sendJson(response, 429, '{}', { 'retry-after': ['3', '4'] }));
    expect((await gateway.post('/v1/chat/completions', body)).headers.get('retry-after')).toBe('3');
    await gateway.close();
  });
});

describe('a second process', () => {
  test('on the same database is refused, and the requests of the first process stay open', async () => {
    const storage = join(makeTemporaryFolder(), 'textgate.db');
    const gateway = await startGateway({ upstreamUrl: upstream.url, storage });
    upstream.play((response) => void sendStream(response, chatFrames(['a']).slice(0, 2)));
    const leaving = new AbortController();
    const response = await gateway.post('/v1/chat/completions', streaming, { signal: leaving.signal });
    await response.body?.getReader().read();
    await expect(startGateway({ upstreamUrl: upstream.url, storage })).rejects.toThrow(
      'another textgate process is using it',
    );
    expect(readRecords(storage)).toMatchObject([{ outcome: null }]);
    leaving.abort();
    await gateway.close();
  }, 120_000);
});

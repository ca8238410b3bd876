import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { TestContext } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { readBody } from '../../src/http/body.ts';
import { createRouter } from '../../src/http/router.ts';
import { createHttpServer, startListening } from '../../src/http/server.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';

/** How long requests may take in these tests, in milliseconds; Node checks once a second. */
const timeoutMs = 800;

// These tests wait for Node's own timers: all of them at the same time.

/** Longer than the timeout and two of those checks, in milliseconds. */
const tooLongMs = 3_500;

const large = 'x'.repeat(1_000_000);

/**
 * Starts a listener whose route waits for a gate, like a slot, then reads the body, and answers with its length when
 * `answering` resolves.
 */
async function listen({ onTestFinished }: TestContext, answering = Promise.resolve(), requestMs = timeoutMs) {
  const gate = Promise.withResolvers<void>();
  let [asked, read] = [0, 0];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    asked++;
    await gate.promise;
    const body = await readBody(request, response, 10_000_000);
    read++;
    await answering;
    if (body instanceof Uint8Array) response.end(`read ${body.length};`);
  };
  const router = createRouter().post('/', (request, response) => void answer(request, response));
  const server = createHttpServer(router, {
    nextId: () => '1',
    clock: systemClock,
    prepare: (_request, _response, next) => next(),
    unknownUrl: (_request, response) => void response.writeHead(404).end(),
    limits: () => ({ maxConnections: 10, maxAnonymousPerAddress: 10 }),
    deadlines: { head: timeoutMs, request: requestMs, unread: 30_000, idle: 65_000 },
    maxHeadBytes: 16_384,
    onRefused: () => {},
    isProxy: () => false,
    onRequestRefused: () => {},
    crossOriginHeaders: () => null,
    isRetiring: () => false,
  });
  const port = await startListening(server, '127.0.0.1', 0);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    client: openRaw(`http://127.0.0.1:${port}`, { atEnd: onTestFinished }),
    asked: () => asked,
    read: () => read,
    open: () => gate.resolve(),
  };
}

const post = (headers: string, body: string): string =>
  `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}\r\n${body}`;
const wait = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, tooLongMs));

test.concurrent('a listener reads a large body although its request waited for a slot longer than the request timeout', async (context) => {
  const { client, asked, open } = await listen(context);
  client.socket.write(post(`Content-Length: ${large.length}\r\n`, large));
  await eventually('the request arrived', () => asked() === 1);
  await wait();
  expect([client.text(), client.isClosed()]).toEqual(['', false]);
  open();
  await eventually('the answer has arrived', () => client.text().includes(`read ${large.length};`));
});

test.concurrent('a listener sends 100 Continue although the request waited for its slot longer than the request timeout', async (context) => {
  const { client, asked, open } = await listen(context);
  client.socket.write(post('Content-Length: 2\r\nExpect: 100-continue\r\n', ''));
  await eventually('the request arrived', () => asked() === 1);
  await wait();
  open();
  await eventually('100 Continue has arrived', () => client.text().includes('100 Continue'));
  client.socket.write('{}');
  await eventually('the answer has arrived', () => client.text().includes('read 2;'));
});

test.concurrent('a listener that has too many pending answers to read on still reads a body that has begun', async (context) => {
  const answering = Promise.withResolvers<void>();
  const { client, read, open } = await listen(context, answering.promise, 60_000);
  open();
  const whole = post('Content-Length: 2\r\n', '{}');
  client.socket.write(whole.repeat(8).slice(0, -1));
  await eventually('the other requests are read', () => read() === 7);
  await setImmediate();
  client.socket.write('}');
  await eventually('the last one is read', () => read() === 8);
  expect(client.text()).toBe('');
  answering.resolve();
  await eventually('all are answered', () => client.text().split('read 2;').length === 9);
});

test.concurrent('a listener sends all pending answers although it stopped reading in the middle of the next head', async (context) => {
  const { client, asked, open } = await listen(context);
  const whole = post('Content-Length: 2\r\n', '{}');
  client.socket.write(whole.repeat(8) + whole.slice(0, 30));
  await eventually('the requests arrived', () => asked() === 8);
  await wait();
  open();
  client.socket.write(whole.slice(30));
  await eventually('all are answered', () => client.text().split('read 2;').length === 10);
});

test.concurrent.for([true, false])(
  'a listener that stopped reading in the middle of a head gives its rest the usual time from then on (it arrives: %s)',
  async (arrives, context) => {
    const answering = Promise.withResolvers<void>();
    const { client, asked, open } = await listen(context, answering.promise);
    open();
    const whole = post('Content-Length: 2\r\n', '{}');
    client.socket.write(whole.repeat(8) + whole.slice(0, 30));
    await eventually('the requests arrived', () => asked() === 8);
    await wait();
    answering.resolve();
    if (arrives) client.socket.write(whole.slice(30));
    await eventually('the others are answered', () => client.text().split('read 2;').length >= 9);
    await wait();
    expect(client.text().match(/HTTP\/1.1 \d+|read/g)).toEqual([
      ...Array.from({ length: arrives ? 9 : 8 }, () => ['HTTP/1.1 200', 'read']).flat(),
      ...(arrives ? [] : ['HTTP/1.1 408']),
    ]);
    expect(client.isClosed()).toBe(!arrives);
  },
);

test.concurrent('a listener refuses a body that is late while it is read', async (context) => {
  const { client, asked, open } = await listen(context);
  open();
  client.socket.write(post('Content-Length: 2\r\n', '{'));
  await eventually('the request arrived', () => asked() === 1);
  await eventually('the request is refused', () => client.text().includes('HTTP/1.1 408'));
});

test.concurrent('a listener refuses a body that does not arrive after the wait for a slot', async (context) => {
  const { client, asked, open } = await listen(context);
  client.socket.write(post('Content-Length: 2\r\nExpect: 100-continue\r\n', ''));
  await eventually('the request arrived', () => asked() === 1);
  await wait();
  open();
  await eventually('the request is refused', () => client.text().includes('HTTP/1.1 408'));
});

test.concurrent('a listener sends an answer that takes long, although its body came late while the request waited for its slot', async (context) => {
  const answering = Promise.withResolvers<void>();
  const { client, asked, open } = await listen(context, answering.promise);
  client.socket.write(post('Content-Length: 2\r\n', '{'));
  await eventually('the request arrived', () => asked() === 1);
  await wait();
  client.socket.write('}');
  // The other bytes have no signal of their own: a second request behind them does.
  client.socket.write(post('Content-Length: 2\r\n', '{}'));
  await eventually('the body has arrived', () => asked() === 2);
  open();
  await wait();
  expect([client.text(), client.isClosed()]).toEqual(['', false]);
  answering.resolve();
  await eventually('both are answered', () => client.text().split('read 2;').length === 3);
});

test.concurrent('a listener sends an answer that takes long to a body that arrived in the time it was given after the wait for a slot', async (context) => {
  const answering = Promise.withResolvers<void>();
  const { client, asked, open } = await listen(context, answering.promise);
  client.socket.write(post('Content-Length: 2\r\n', '{'));
  await eventually('the request arrived', () => asked() === 1);
  await wait();
  open();
  client.socket.write('}');
  await wait();
  expect([client.text(), client.isClosed()]).toEqual(['', false]);
  answering.resolve();
  await eventually('it is answered', () => client.text().includes('read 2;'));
});

test.concurrent('a listener refuses a late head', async (context) => {
  const { client } = await listen(context);
  client.socket.write('POST / HT');
  await eventually('the request is refused', () => client.text().includes('HTTP/1.1 408'));
});

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Router } from 'express';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { readBody } from '../../src/http/body.ts';
import { createHttpServer, startListening } from '../../src/http/server.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';

/** How long requests may take in these tests, in milliseconds; Node looks once a second. */
const timeoutMs = 300;

/** Longer than the timeout and two of those looks, in milliseconds. */
const tooLongMs = 2_500;

const large = 'x'.repeat(1_000_000);

/** A listener whose only route waits for the gate, as for a slot, then reads the body and answers with its length. */
async function listen() {
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    asked++;
    await gate.promise;
    const body = await readBody(request, response, 10_000_000);
    if (body instanceof Uint8Array) response.end(`read ${body.length};`);
  };
  const router = Router().post('/', (request, response) => void answer(request, response));
  const server = createHttpServer(router, {
    nextId: () => '1',
    clock: systemClock,
    prepare: (_request, _response, next) => next(),
    limits: () => ({ maxConnections: 10, maxAnonymousPerAddress: 10 }),
    onRefused: () => {},
  });
  server.headersTimeout = timeoutMs;
  server.requestTimeout = timeoutMs;
  const port = await startListening(server, '127.0.0.1', 0);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { client: openRaw(`http://127.0.0.1:${port}`), asked: () => asked, open: () => gate.resolve() };
}

const post = (headers: string, body: string): string =>
  `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}\r\n${body}`;
const wait = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, tooLongMs));

test('a large body whose request waits longer for its slot than a request may take is read in the end', async () => {
  const { client, asked, open } = await listen();
  client.socket.write(post(`Content-Length: ${large.length}\r\n`, large));
  await eventually('it is asked', () => asked() === 1);
  await wait();
  expect([client.text(), client.isClosed()]).toEqual(['', false]);
  open();
  await eventually('it is answered', () => client.text().includes(`read ${large.length};`));
});

test('a client that waits for 100 Continue behind such a slot is told to continue', async () => {
  const { client, asked, open } = await listen();
  client.socket.write(post('Content-Length: 2\r\nExpect: 100-continue\r\n', ''));
  await eventually('it is asked', () => asked() === 1);
  await wait();
  open();
  await eventually('it may go on', () => client.text().includes('100 Continue'));
  client.socket.write('{}');
  await eventually('it is answered', () => client.text().includes('read 2;'));
});

test('a client whose next head was cut in two by the stop of its reading keeps its answers', async () => {
  const { client, asked, open } = await listen();
  const whole = post('Content-Length: 2\r\n', '{}');
  client.socket.write(whole.repeat(8) + whole.slice(0, 30));
  await eventually('they are asked', () => asked() === 8);
  await wait();
  open();
  client.socket.write(whole.slice(30));
  await eventually('all are answered', () => client.text().split('read 2;').length === 10);
});

test('a body that is late though it is read is refused', async () => {
  const { client, asked, open } = await listen();
  open();
  client.socket.write(post('Content-Length: 2\r\n', '{'));
  await eventually('it is asked', () => asked() === 1);
  await eventually('it is refused', () => client.text().includes('HTTP/1.1 408'));
});

test('a body that does not come once it may is refused', async () => {
  const { client, asked, open } = await listen();
  client.socket.write(post('Content-Length: 2\r\nExpect: 100-continue\r\n', ''));
  await eventually('it is asked', () => asked() === 1);
  await wait();
  open();
  await eventually('it is refused', () => client.text().includes('HTTP/1.1 408'));
});

test('a head that is late is refused', async () => {
  const { client } = await listen();
  client.socket.write('POST / HT');
  await eventually('it is refused', () => client.text().includes('HTTP/1.1 408'));
});

import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { openRaw } from '../support/raw-socket.ts';
import { sendJson } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';
import { startGateway } from '../support/test-gateway.ts';
import { openCertificate } from '../support/tls-stage.ts';

/** More bytes than the system buffers between two sockets. */
const largeBytes = 15_000_000;

/** How many bytes a slow client reads at a time. */
const sipBytes = 2_000_000;

const clock = createFakeClock();
const certificate = openCertificate();
const { upstream, gateway } = await openStage({
  clock,
  passthrough: [{ path: '/download', upstream: 'local' }],
  timeouts: { total: '20m', idle: '10m' },
});
const authorization = `Authorization: Bearer ${gateway.key}`;
const piece = Buffer.alloc(65_536, 'x');
const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`;
const inFlight = async (): Promise<number> => (await askAdmin(gateway, 'GET', '/in-flight')).body.data.length;

/** Lets all pending I/O happen without advancing the clock: the answer fills the buffers of the system. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await fetch(`${gateway.adminUrl}/healthz`);
}

/** How much of the large answer the upstream has been able to send. */
let sentBytes = 0;

function* largeAnswer(): Generator<Buffer> {
  for (sentBytes = 0; sentBytes < largeBytes; sentBytes += piece.length) yield piece;
}

const sendLarge = (response: ServerResponse): void =>
  void Readable.from(largeAnswer(), { objectMode: false }).pipe(response);

/** Resolves once nothing of the large answer moves any more. What moves later counts as read by the client. */
async function answerIsStuck(): Promise<void> {
  for (let before = -1; before !== sentBytes;) {
    before = sentBytes;
    await settle();
  }
}

test('a large passthrough answer that its client never reads is cut after 120 s, and its upstream and slot are free', async () => {
  upstream.play(sendLarge);
  const client = openRaw(gateway.url, { paused: true });
  client.socket.write(ask('/download'));
  await eventually('the upstream is asked', () => upstream.running === 1);
  await gateway.recorded();
  await answerIsStuck();
  clock.advance(115_000);
  await settle();
  expect(await inFlight()).toBe(1);
  clock.advance(10_000);
  await eventually('the slot is free', async () => (await inFlight()) === 0);
  await eventually('the upstream call is over', () => upstream.running === 0);
  const { data } = (await askAdmin(gateway, 'GET', '/records?limit=1')).body;
  expect(data[0].outcome).toBe('client_closed');
});

test('an answer of gateway.fetch whose body is never read is cut after 30 s, and its upstream and slot are free', async () => {
  upstream.play(sendLarge);
  const headers = { authorization: `Bearer ${gateway.key}` };
  const answer = await gateway.gateway.fetch(new Request(`${gateway.url}/download`, { headers }));
  await gateway.recorded();
  await answerIsStuck();
  clock.advance(25_000);
  await settle();
  expect(await inFlight()).toBe(1);
  clock.advance(10_000);
  await eventually('the slot is free', async () => (await inFlight()) === 0);
  await eventually('the upstream call is over', () => upstream.running === 0);
  await expect(answer.text()).rejects.toThrow('broke off');
});

test('the same answer over TLS is cut after 120 s, too, by what the client has read of it', async () => {
  const secure = await startGateway({
    upstreamUrl: upstream.url,
    clock,
    passthrough: [{ path: '/download', upstream: 'local' }],
    timeouts: { total: '20m', idle: '10m' },
    server: { tls: certificate.paths },
  });
  onTestFinished(() => secure.close());
  upstream.play(sendLarge);
  const client = openRaw(secure.url, { paused: true });
  client.socket.write(`GET /download HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secure.key}\r\n\r\n`);
  await eventually('the upstream is asked', () => upstream.running === 1);
  await secure.recorded();
  await answerIsStuck();
  clock.advance(115_000);
  await settle();
  expect(upstream.running).toBe(1);
  clock.advance(10_000);
  await eventually('the upstream call is over', () => upstream.running === 0);
});

test('lists of models that their client never reads are cut after 120 s, because they are large together', async () => {
  const names = Array.from({ length: 1_000 }, (_, index) => `${'m'.repeat(190)}-${index}`);
  upstream.play((response) => sendJson(response, 200, JSON.stringify({ data: names.map((id) => ({ id })) })));
  const listing = await startGateway({ upstreamUrl: upstream.url, clock, discover: true });
  onTestFinished(() => listing.close());
  const client = openRaw(listing.url, { paused: true });
  const request = `GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${listing.key}\r\n\r\n`;
  client.socket.write(request);
  // Until a key is accepted, fewer requests may be pending on a connection.
  client.socket.resume();
  await eventually('the first answer is read', () => client.text().includes(`${names.at(-1)}"`));
  client.socket.pause();
  // As many as a connection may have pending, and more than its buffers hold the answers of.
  client.socket.write(request.repeat(60));
  await settle();
  clock.advance(115_000);
  await settle();
  expect(client.isClosed()).toBe(false);
  clock.advance(10_000);
  client.socket.resume();
  await eventually('the connection is cut', client.isClosed);
  expect(client.text().split('HTTP/1.1 200').length - 1).toBeLessThan(60);
});

test('a large answer that its client reads slowly is not cut, even after a long time', async () => {
  const content = 'x'.repeat(largeBytes);
  upstream.play((response) =>
    sendJson(
      response,
      200,
      JSON.stringify({ choices: [{ message: { content }, finish_reason: 'stop' }], usage: null }),
    ),
  );
  const client = openRaw(gateway.url, { paused: true });
  const body = JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'x' }] });
  client.socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n${authorization}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
  );
  let received = 0;
  let thirst = 0;
  client.socket.on('data', (chunk) => {
    received += chunk.length;
    if (received >= thirst) client.socket.pause();
  });
  client.socket.pause();
  for (let sip = 1; thirst < largeBytes; sip++) {
    thirst = Math.min(sip * sipBytes, largeBytes);
    client.socket.resume();
    await eventually('some of it is read', () => received >= thirst);
    await settle();
    clock.advance(100_000);
  }
  expect(client.error()).toBeNull();
}, 120_000);

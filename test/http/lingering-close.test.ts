import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { announceClose, lingerAfter } from '../../src/http/connections/lingering-close.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';

/** A client whose request was answered after the first byte of a body that is longer. */
async function answerEarly(bodyBytes: number) {
  const arrived = Promise.withResolvers<IncomingMessage>();
  const server = createServer((request, response) => {
    announceClose(response);
    lingerAfter(response);
    response.end('no');
    arrived.resolve(request);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const client = openRaw(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  // It ends its side after the body, and not at once when the server ends the other one.
  client.socket.allowHalfOpen = true;
  client.socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bodyBytes}\r\n\r\nx`);
  return { client, request: await arrived.promise };
}

test('a connection stays open after an early answer until the rest of the body has arrived, so that no reset overtakes the answer', async () => {
  const { client, request } = await answerEarly(2);
  await eventually('the answer has ended', () => client.isClosed());
  expect(client.text()).toMatch(/\r\n\r\nno$/);
  expect(request.socket.destroyed).toBe(false);
  const closed = once(request, 'close');
  client.socket.write('x');
  await closed;
  expect([request.complete, client.error()]).toEqual([true, null]);
});

test('a connection is read no more after an early answer once its client has sent a quarter of a megabyte', async () => {
  const { client, request } = await answerEarly(100_000_000);
  await eventually('the answer has arrived', () => client.text().endsWith('no'));
  client.socket.write(Buffer.alloc(8 * 1_024 * 1_024));
  await eventually('reading has stopped', () => request.isPaused());
  expect(request.socket.bytesRead).toBeLessThan(1_024 * 1_024);
});

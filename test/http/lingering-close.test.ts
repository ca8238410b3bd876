import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { announceClose, lingerAfter } from '../../src/http/connections/lingering-close.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';

test('a connection stays open after an early answer until the rest of the body has arrived, so that no reset overtakes the answer', async () => {
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
  client.socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nx');
  const request = await arrived.promise;
  await eventually('the answer has ended', () => client.isClosed());
  expect(client.text()).toMatch(/\r\n\r\nno$/);
  expect(request.socket.destroyed).toBe(false);
  const closed = once(request, 'close');
  client.socket.write('x');
  await closed;
  expect([request.complete, client.error()]).toEqual([true, null]);
});

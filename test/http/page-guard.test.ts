import express from 'express';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { readClientAddresses } from '../../src/http/heads/client-addresses.ts';
import { readOwnPages, createPageGuard } from '../../src/http/pages/own-pages.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';

/** Sends a request over loopback to an app with the guard of a listener that is configured on a host. */
async function ask(configuredHost: string, head: string): Promise<string> {
  const pages = readOwnPages(
    { host: configuredHost, hosts: ['gateway.internal'] },
    readClientAddresses([], false),
  );
  const app = express().use(
    createPageGuard(
      configuredHost,
      () => pages,
      (_request, _response, next) => next(),
    ),
    (_request, response) => void response.end('ok'),
  );
  const server = app.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const client = openRaw(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  client.socket.write(`GET /metrics ${head}\r\nConnection: close\r\n\r\n`);
  await eventually('the answer has arrived', client.isClosed);
  return client.text().slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length);
}

test.each([
  ['127.0.0.1', 'HTTP/1.1\r\nHost: evil.example', '401'],
  ['localhost', 'HTTP/1.1\r\nHost: evil.example', '401'],
  ['::1', 'HTTP/1.1\r\nHost: evil.example', '401'],
  ['127.0.0.1', 'HTTP/1.1\r\nHost: localhost:8081', '200'],
  ['127.0.0.1', 'HTTP/1.1\r\nHost: gateway.internal:8081', '200'],
  ['127.0.0.1', 'HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost', '200'],
  ['127.0.0.1', 'HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000', '401'],
  ['127.0.0.1', 'HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example', '401'],
  ['127.0.0.1', 'HTTP/1.0', '200'],
  ['0.0.0.0', 'HTTP/1.1\r\nHost: metrics.internal', '200'],
])('a listener configured on %s answers %j with %s', async (configuredHost, head, status) => {
  expect(await ask(configuredHost, head)).toBe(status);
});

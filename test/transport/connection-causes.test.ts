import { createServer } from 'node:http';
import { createServer as createSocketServer } from 'node:net';
import type { AddressInfo, LookupFunction, Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { diagnose, sentencesOf } from '../../src/domain/diagnosis/diagnose.ts';
import { describeError } from '../../src/transport/describe-error.ts';
import { createHttpUpstream } from '../../src/transport/http-upstream.ts';
import { localTarget } from '../support/call-target.ts';
import { startTlsServer } from '../support/tls-server.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function portOf(server: Server): Promise<number> {
  if (server.address() === null) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Calls an address over real sockets; resolves with the diagnosis. */
async function diagnoseCall(url: string, lookup?: LookupFunction): Promise<string> {
  const deadlines = { firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 };
  const options = {
    url: new URL(url),
    headers: () => ({}),
    connectMs: 200,
    allowLinkLocal: false,
    deadlines,
    learnsLimits: false,
  };
  const upstream = createHttpUpstream(
    { ...options, ...(lookup === undefined ? {} : { lookup }) },
    systemClock,
  );
  open.push(() => upstream.close());
  const call = { method: 'GET', path: '/models' } as const;
  const rest = { upstream: 'local', body: null, stream: false, leftMs: 60_000, fresh: false };
  const answer = await upstream.call({ ...call, ...rest }, new AbortController().signal);
  return sentencesOf(diagnose({ ...call, target: localTarget(url) }, answer));
}

/** Resolves every name to these addresses. */
const resolvingTo =
  (...addresses: readonly string[]): LookupFunction =>
  (_hostname, _options, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );

test('a port on which nothing listens is diagnosed as refused', async () => {
  const server = createServer();
  const port = await portOf(server);
  await new Promise((resolve) => server.close(resolve));
  expect(await diagnoseCall(`http://127.0.0.1:${port}/v1`)).toMatch(
    new RegExp(`^GET http://127.0.0.1:${port}/v1/models: connection refused. Start the server, or correct`),
  );
});

test('a host with several addresses, none of which answers, is diagnosed by the most telling error', async () => {
  const server = createServer();
  const port = await portOf(server);
  await new Promise((resolve) => server.close(resolve));
  const lookup = resolvingTo('127.0.0.1', '127.0.0.2');
  expect(await diagnoseCall(`http://model.test:${port}/v1`, lookup)).toContain(': connection refused.');
});

test('the errors of several addresses count by what they say of the host', () => {
  const failed = (code: string) => Object.assign(new Error(`connect ${code}`), { code });
  const codeOf = (...codes: readonly string[]) => describeError(new AggregateError(codes.map(failed))).code;
  expect(codeOf('ENETUNREACH', 'ECONNREFUSED')).toBe('ECONNREFUSED');
  expect(codeOf('ETIMEDOUT', 'ECONNREFUSED')).toBe('ECONNREFUSED');
  expect(codeOf('ENETUNREACH', 'EHOSTUNREACH')).toBe('ENETUNREACH');
  expect(codeOf()).toBe('AggregateError');
});

test('a host name without an address is diagnosed by its name', async () => {
  expect(await diagnoseCall('http://nosuch.invalid/v1')).toMatch(
    /^GET http:\/\/nosuch\.invalid\/v1\/models: the host name nosuch\.invalid (has no address|could not be resolved)\./,
  );
});

test('https to a server without TLS is diagnosed', async () => {
  const port = await portOf(createServer((_request, response) => response.end()));
  expect(await diagnoseCall(`https://127.0.0.1:${port}/v1`)).toContain(
    'the server does not use TLS on this port. Write http:// instead of https:// in upstreams.local.url',
  );
});

test('http to a server with TLS is diagnosed', async () => {
  const port = await portOf(await startTlsServer((_request, response) => response.end()));
  expect(await diagnoseCall(`http://127.0.0.1:${port}/v1`)).toContain(
    'the server closed the connection without an answer. ' +
      'Check the log of the server; if it expects TLS, write https:// in upstreams.local.url.',
  );
});

test('http to a server that answers with a TLS alert is diagnosed', async () => {
  const alert = Buffer.from([0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46]);
  const port = await portOf(createSocketServer((socket) => void socket.end(alert)));
  expect(await diagnoseCall(`http://127.0.0.1:${port}/v1`)).toContain(
    'the answer is not HTTP. Write https:// instead of http:// in upstreams.local.url',
  );
});

test('an answer whose headers are too large is diagnosed', async () => {
  const port = await portOf(
    createServer({ maxHeaderSize: 1_000_000 }, (_request, response) => {
      response.writeHead(200, { 'set-cookie': 'x'.repeat(40_000) }).end('{}');
    }),
  );
  expect(await diagnoseCall(`http://127.0.0.1:${port}/v1`)).toContain(
    '/models: the headers of the answer are larger than 16 KiB. Check which headers',
  );
});

test('a self-signed certificate is diagnosed', async () => {
  const port = await portOf(await startTlsServer((_request, response) => response.end()));
  expect(await diagnoseCall(`https://localhost:${port}/v1`)).toContain(
    "the server's certificate is self-signed. Set upstreams.local.tls.ca to a file with",
  );
});

test('a server that does not complete a TLS connection is diagnosed as too slow', async () => {
  const port = await portOf(createSocketServer((socket) => void socket.on('error', () => {})));
  expect(await diagnoseCall(`https://127.0.0.1:${port}/v1`)).toContain('could not be opened in time. Check');
});

test('a host name that is resolved to a link-local address is diagnosed', async () => {
  expect(await diagnoseCall('http://model.test/v1', resolvingTo('169.254.169.254'))).toContain(
    'model.test is resolved to a link-local address, which is refused. ' +
      'Correct the host of upstreams.local.url, or set upstreams.local.allowLinkLocal: true.',
  );
});

import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import { startGateway } from '../support/test-gateway.ts';

/** A bad request, by the reason of its refusal. */
const requests: Readonly<Record<string, string>> = {
  syntax: 'NONSENSE\r\n\r\n',
  version: 'GET / HTTP/1.2\r\nHost: x\r\n\r\n',
  host: 'GET / HTTP/1.1\r\n\r\n',
  target: 'GET * HTTP/1.1\r\nHost: x\r\n\r\n',
  method: 'CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n',
  framing: 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
  duplicate_header: 'GET / HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n',
  expectation: 'POST / HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n',
  upgrade: 'GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
  too_large: `GET / HTTP/1.1\r\nHost: x\r\n${'A: b\r\n'.repeat(300)}\r\n`,
};

test('requests that are refused before any route are counted by reason, and are one line of the log in ten seconds', async () => {
  const clock = createFakeClock();
  const lines: string[] = [];
  const logDestination = { write: (line: string) => void lines.push(line) };
  const gateway = await startGateway({ clock, logDestination, logLevel: 'info' });
  onTestFinished(() => gateway.close());
  for (const bytes of Object.values(requests))
    for (const url of [gateway.url, gateway.adminUrl]) {
      const client = openRaw(url);
      client.socket.write(bytes);
      await eventually('it is refused', () => /^HTTP\/1\.1 4\d\d /.test(client.text()));
    }
  const half = openRaw(gateway.url);
  half.socket.end('GET /v1/mod');
  await eventually('what breaks off is refused', () => half.text().startsWith('HTTP/1.1 400 '));
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const counted = [...metrics.matchAll(/^textgate_edge_refusals_total\{reason="(\w+)"\} ([1-9]\d*)$/gm)];
  const counts = {
    ...Object.fromEntries(Object.keys(requests).map((reason) => [reason, 2])),
    incomplete: 1,
  };
  expect(Object.fromEntries(counted.map(([, reason, count]) => [reason, Number(count)]))).toEqual(counts);
  const summed = () => lines.filter((line) => line.includes('requests refused before any route'));
  expect(summed()).toEqual([]);
  clock.advance(10_000);
  expect(summed().map((line) => JSON.parse(line) as object)).toMatchObject([{ level: 30, counts }]);
});

const typed = 'Host: x\r\nContent-Type: application/json\r\n';
const body = '{"model":"small"}';

test.each([
  ['a chat', `POST /v1/chat/completions HTTP/1.1\r\n${typed}\r\n${body}`],
  ['a response', `POST /v1/responses HTTP/1.1\r\n${typed}\r\n${body}`],
  ['an unknown path', `POST /v1/x HTTP/1.1\r\n${typed}\r\n${body}`],
  ['HTTP/1.0', `POST /v1/chat/completions HTTP/1.0\r\n${typed}\r\n${body}`],
  ['a connection to be closed', `POST /v1/responses HTTP/1.1\r\n${typed}Connection: close\r\n\r\n${body}`],
])('a body without its length gets 411, and its request does not run: %s', async (_what, bytes) => {
  const lines: string[] = [];
  const gateway = await startGateway({
    logDestination: { write: (line) => void lines.push(line) },
    logLevel: 'info',
  });
  onTestFinished(() => gateway.close());
  const client = openRaw(gateway.url);
  client.socket.write(bytes.replace('Host: x', `Host: x\r\nAuthorization: Bearer ${gateway.key}`));
  await eventually('it is closed', client.isClosed);
  expect(client.text()).toMatch(/^HTTP\/1\.1 411 Length Required\r\n/);
  expect(client.text().match(/HTTP\/1\.1/g)).toHaveLength(2);
  expect(client.text()).toContain("The request has a body without its length: send 'Content-Length'");
  expect(client.error()).toBeNull();
  expect((await gateway.gateway.inFlight()).data).toEqual([]);
  expect(lines.filter((line) => line.includes('requestId'))).toEqual([]);
});

test('an answer that was begun is not mixed with the refusal of bytes behind its request', async () => {
  const gateway = await startGateway();
  onTestFinished(() => gateway.close());
  const client = openRaw(gateway.url);
  const chat = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x '.repeat(200) }] };
  client.socket.write(rawPost('/v1/chat/completions', gateway.key, chat));
  await eventually('it has begun', () => client.text().includes('data: '));
  client.socket.write('{"more":1}');
  await eventually('it is closed', client.isClosed);
  expect(client.text()).not.toMatch(/HTTP\/1\.1 411/);
});

test.each([
  ['all', 'GET /v1/models HTTP/1.1\nHost: x\n\n'],
  ['one in the middle', 'GET /v1/models HTTP/1.1\r\nHost: x\nA: b\r\n\r\n'],
  ['the last', 'GET /v1/models HTTP/1.1\r\nHost: x\r\n\n'],
  ['one in a name', 'GET /v1/models HTTP/1.1\r\nHo\nst: x\r\n\r\n'],
  ['one before a value', 'GET /v1/models HTTP/1.1\r\nA:\n b\r\n\r\n'],
])('a line feed alone is named as what is wrong: %s', async (_which, bytes) => {
  const gateway = await startGateway();
  onTestFinished(() => gateway.close());
  const client = openRaw(gateway.url);
  client.socket.write(bytes);
  await eventually('it is refused', () => client.text().endsWith('}'));
  expect(client.text()).toMatch(/^HTTP\/1\.1 400 /);
  expect(client.text()).toContain('does not end with a carriage return and a line feed');
});

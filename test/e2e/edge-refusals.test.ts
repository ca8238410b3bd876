import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { openRaw } from '../support/raw-socket.ts';
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

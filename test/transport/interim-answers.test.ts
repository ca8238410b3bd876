import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import type { Upstream } from '../../src/transport/upstreams.ts';
import { createHttpUpstream } from '../../src/transport/http-upstream.ts';
import { createWebhookClient } from '../../src/transport/webhook-client.ts';
import { startHttpProxy } from '../support/http-proxy.ts';
import { openCertificate } from '../support/tls-stage.ts';

/** Writes an answer on the socket of a request. */
type Answer = (socket: Socket) => unknown;

let answer: Answer = () => {};
const listener: RequestListener = (request) => void request.resume().on('end', () => answer(request.socket));
const plain = createServer(listener);
const { paths, pem } = openCertificate();
const secured = createTlsServer({ key: readFileSync(paths.key), cert: pem }, listener);
for (const server of [plain, secured])
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
const proxy = await startHttpProxy();
afterAll(async () => {
  for (const server of [plain, secured]) {
    server.close();
    server.closeAllConnections();
  }
  await proxy.close();
});

const portOf = (server: typeof plain | typeof secured): number => (server.address() as AddressInfo).port;
const basics = { connectMs: 2_000, allowLinkLocal: false };
const deadlines = { firstByteMs: 10_000, idleMs: 10_000, totalMs: 10_000 };

function connect(url: string, throughProxy: boolean): Upstream {
  const settings = { headers: () => ({}), learnsLimits: false, deadlines };
  const used = throughProxy ? { url: new URL(proxy.url), authorization: null } : null;
  const upstream = createHttpUpstream(
    { url: new URL(url), ...basics, ...settings, proxy: used },
    systemClock,
  );
  onTestFinished(() => upstream.close());
  return upstream;
}

/** Sends a call; resolves with the status and the whole body, or with the fault. */
async function ask(upstream: Upstream): Promise<string> {
  const { signal } = new AbortController();
  const call = {
    upstream: 'x',
    method: 'POST',
    path: '/x',
    body: '{}',
    stream: false,
    leftMs: 60_000,
  } as const;
  const got = await upstream.call({ ...call, fresh: false }, signal);
  if ('fault' in got) return `${got.fault} ${got.code ?? ''}`;
  let body = '';
  for (let part = await got.read(); part !== null; part = await got.read()) {
    if ('fault' in part) return part.fault;
    body += Buffer.from(part).toString('latin1');
  }
  return `${got.status} ${body}`;
}

const go = 'HTTP/1.1 100 Continue\r\n\r\n';
const whole = (body: string): string => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
const write =
  (...parts: readonly string[]): Answer =>
  async (socket) => {
    for (const part of parts) {
      await new Promise((resolve) => socket.write(part, 'latin1', resolve));
      await setImmediate();
    }
  };

/** What comes before an answer and is skipped. */
const skipped: Readonly<Record<string, readonly string[]>> = {
  'a 100 in the same packet': [go + whole('hello')],
  'a 100 in a packet of its own': [go, whole('hello')],
  'a 100 byte by byte': (go + whole('hello')).split(''),
  'several with headers': [
    `HTTP/1.1 100 Continue\r\nx: y\r\nz: ${'a'.repeat(9_000)}\r\n\r\n${go}${go}`,
    whole('hello'),
  ],
  'other ones, too': [
    `HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${go}HTTP/1.1 102 P\r\n\r\n`,
    whole('hello'),
  ],
  'one over HTTP/1.0 without words': ['HTTP/1.0 100\r\n\r\n', whole('hello')],
  'one that ends where the answer begins': [go + whole('hello').slice(0, 5), whole('hello').slice(5)],
  nothing: [whole('hello')],
};

describe.each([
  ['a connection', () => `http://127.0.0.1:${portOf(plain)}`, false],
  ['TLS', () => `https://localhost:${portOf(secured)}`, false],
  ['TLS through a proxy', () => `https://localhost:${portOf(secured)}`, true],
] as const)('over %s', (_way, url, throughProxy) => {
  test.each(Object.entries(skipped))(
    '%s is skipped before an answer, and before the next one',
    async (_what, parts) => {
      const upstream = connect(url(), throughProxy);
      answer = write(...parts);
      for (let time = 0; time < 3; time++) {
        expect(await ask(upstream)).toBe('200 hello');
        await setImmediate();
      }
    },
  );

  test('a body that looks like one arrives as it is, whole or in pieces', async () => {
    const upstream = connect(url(), throughProxy);
    const body = go + whole('x') + go;
    const [head = ''] = whole(body).split(body);
    for (const parts of [
      [go + head + body],
      [go, head, body],
      [head, ...body.split('')],
      [head + go, whole('x'), go],
    ]) {
      answer = write(...parts);
      expect(await ask(upstream)).toBe(`200 ${body}`);
      await setImmediate();
    }
  });

  test.each([
    ['that are small', go.repeat(4_000)],
    ['with headers', `HTTP/1.1 100 Continue\r\n${`x: ${'y'.repeat(1_000)}\r\n`.repeat(10)}\r\n`.repeat(10)],
    ['one without an end', `HTTP/1.1 100 Continue\r\n${`x: ${'y'.repeat(1_000)}\r\n`.repeat(100)}`],
  ])('interim answers without end have a cause of their own: %s', async (_what, bytes) => {
    answer = write(bytes, bytes);
    expect(await ask(connect(url(), throughProxy))).toBe('oversized_head INTERIM_OVERFLOW');
  });

  test.each([
    ['a switch of protocols', 'HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'],
    ['no HTTP, which is short', 'SSH-2.0-x\r\n'],
    ['a part of one, and the end', 'HTTP/1.1 10'],
    ['one, and the end', go],
  ])('%s is no answer', async (_what, bytes) => {
    answer = (socket) => void socket.end(bytes);
    expect(await ask(connect(url(), throughProxy))).toMatch(/^(unanswered|unreachable) /);
  });
});

test('a receiver of webhooks may send one, too', async () => {
  answer = write(go, whole('{}'));
  const url = new URL(`http://127.0.0.1:${portOf(plain)}/hook`);
  const client = createWebhookClient({ url, secrets: ['a secret of the test'], ...basics }, systemClock);
  onTestFinished(() => client.close());
  const sent = await client.send('evt_1', '{}', new AbortController().signal);
  expect(sent).toEqual({ kind: 'delivered', status: 200 });
});

import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import { chatFrames, sayTexts, sendStream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import type { TestGateway } from '../support/test-gateway.ts';

/** A gateway with the upstream that it calls. */
interface Stage {
  readonly upstream: ScriptedUpstream;
  readonly gateway: Pick<TestGateway, 'url' | 'adminUrl' | 'key'>;
}

const chat = '/v1/chat/completions';
const streaming = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] };
const models = 'GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n';

const count = (text: string, part: string | RegExp): number => text.split(part).length - 1;

/** A gateway before hostile connections. */
export function describeHostileConnections({ upstream, gateway }: Stage): void {
  const listeners = () => [gateway.url, gateway.adminUrl];

  /** Opens a stream that has delivered its first frame and continues when the test releases it. */
  async function openRunningStream() {
    const frames = chatFrames(['one ', 'two']);
    const gate = Promise.withResolvers<void>();
    upstream.play((response) => {
      sendStream(response, frames.slice(0, 2));
      void gate.promise.then(() => response.end(frames.slice(2).join('')));
    });
    const client = openRaw(gateway.url);
    client.socket.write(rawPost(chat, gateway.key, streaming));
    await eventually('the stream has begun', () => client.text().includes('one '));
    return { client, goOn: () => gate.resolve() };
  }

  /** Asserts that both listeners still answer: an error event without a listener would have ended the process. */
  async function expectAlive(): Promise<void> {
    expect((await fetch(`${gateway.url}/v1/models`)).status).toBe(401);
    expect((await fetch(`${gateway.adminUrl}/healthz`)).status).toBe(200);
  }

  /** Resolves when each process has read what was sent before: the metrics are asked of all of them. */
  async function everyProcessHasRead(): Promise<void> {
    await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  }

  describe('a connection that is reset', () => {
    test.each([
      ['after CONNECT', 'CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n'],
      ['after CONNECT with a body', 'CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\nContent-Length: 9\r\n\r\nx'],
      ['after an upgrade', 'GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'],
      ['after garbage', '\x16\x03\x01 NONSENSE\r\n\r\n'],
      ['after a head that is too large', `GET / HTTP/1.1\r\nX: ${'y'.repeat(20_000)}`],
      ['after an unsupported expectation', 'POST / HTTP/1.1\r\nHost: x\r\nExpect: y\r\n\r\n'],
      ['in the middle of a body', 'POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx'],
    ])('%s does not end the process, on either listener', async (_name, bytes) => {
      for (const url of listeners()) {
        const sockets = Array.from({ length: 20 }, () => openRaw(url).socket);
        await Promise.all(
          sockets.map(
            (socket) =>
              new Promise<void>((resolve) => {
                socket.once('close', () => resolve());
                socket.write(bytes, () => socket.resetAndDestroy());
              }),
          ),
        );
      }
      await expectAlive();
    });
  });

  describe('a second request that can’t be served, while an answer is sent on its connection', () => {
    test.each([
      ['with an unsupported expectation', 'POST / HTTP/1.1\r\nHost: x\r\nExpect: y\r\n\r\n', '417'],
      ['for an invalid address', 'GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n', '400'],
    ])('(%s) is refused after that answer, which stays complete', async (_name, bytes, status) => {
      const { client, goOn } = await openRunningStream();
      client.socket.write(bytes);
      await expectAlive();
      expect(count(client.text(), 'HTTP/1.1 ')).toBe(1);
      goOn();
      await eventually('the connection is closed', client.isClosed);
      expect(client.text()).toMatch(new RegExp(`\\[DONE\\]\\n\\n\\r\\n0\\r\\n\\r\\nHTTP/1\\.1 ${status} `));
    });

    test.each([
      ['CONNECT', 'CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n'],
      ['garbage', 'NONSENSE\r\n\r\n'],
    ])('(%s) closes the connection without a byte added to that answer', async (_name, bytes) => {
      const { client, goOn } = await openRunningStream();
      client.socket.write(bytes);
      await eventually('the connection is closed', client.isClosed);
      goOn();
      expect(count(client.text(), 'HTTP/1.1 ')).toBe(1);
      expect(client.text()).toMatch(/^HTTP\/1\.1 200 /);
      expect(client.text()).not.toContain('two');
    });

    test.each([
      ['with an unsupported expectation', ['POST / HTTP/1.1\r\nHost: x\r\nExpect: y\r\n\r\n', '']],
      [
        'before its body has arrived',
        [`POST ${chat} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n`, 'xyz'],
      ],
    ])(
      '(%s) closes the connection after its refusal, and no request behind it is run',
      async (_name, parts) => {
        const { client, goOn } = await openRunningStream();
        const [head = '', rest = ''] = parts;
        client.socket.write(head);
        await everyProcessHasRead();
        const asked = upstream.seen.length;
        client.socket.write(rest + rawPost(chat, gateway.key, streaming).repeat(2));
        await everyProcessHasRead();
        goOn();
        await eventually('the connection is closed', client.isClosed);
        expect(client.text()).toMatch(/\[DONE\]\n\n\r\n0\r\n\r\nHTTP\/1\.1 4/);
        expect([count(client.text(), 'HTTP/1.1 '), upstream.seen.length - asked]).toEqual([2, 0]);
      },
    );

    test('is never answered before a pending answer', async () => {
      upstream.play(() => {});
      const asked = upstream.seen.length;
      const client = openRaw(gateway.url);
      client.socket.write(rawPost(chat, gateway.key, streaming));
      await eventually('the upstream is asked', () => upstream.seen.length === asked + 1);
      client.socket.write('NONSENSE\r\n\r\n');
      await eventually('the connection is closed', client.isClosed);
      expect(client.text()).toBe('');
      await eventually('its upstream call is aborted', () => upstream.running === 0);
    });
  });

  describe('a client that closes its side of the connection after its request', () => {
    const whole = { ...streaming, stream: false };

    test('gets the rest of its stream, after which the connection is closed', async () => {
      const { client, goOn } = await openRunningStream();
      client.socket.end();
      await eventually('the end is noticed', () => client.text().includes(': '));
      goOn();
      await eventually('the connection is closed', () => client.socket.destroyed);
      expect(client.text()).toMatch(/one [^]*two[^]*\[DONE\]\n\n\r\n0\r\n\r\n$/);
    });

    test.each([
      ['1.1', 'Host: x', /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/],
      ['1.0', '', /^HTTP\/1\.1 200 OK\r\n/],
    ])('gets its whole answer over HTTP/%s, and its connection is closed', async (version, host, begin) => {
      const gate = Promise.withResolvers<void>();
      upstream.play((response, request) => gate.promise.then(() => sayTexts(['whole'])(response, request)));
      const before = upstream.running;
      const client = openRaw(gateway.url);
      const asked = rawPost(chat, gateway.key, whole).replace('Host: x', host || 'X: x');
      client.socket.end(asked.replace('HTTP/1.1', `HTTP/${version}`));
      await eventually('the upstream is asked', () => upstream.running === before + 1);
      await everyProcessHasRead();
      gate.resolve();
      await eventually('the connection is closed', () => client.socket.destroyed);
      expect(client.text()).toMatch(begin);
      expect(client.text()).toMatch(/\r\nconnection: close\r\n[^]*"content":"whole"/i);
    });

    test('gets all answers to its pipelined requests, on either listener', async () => {
      upstream.play(sayTexts(['x']));
      const client = openRaw(gateway.url);
      client.socket.end(models + rawPost(chat, gateway.key, whole) + models);
      await eventually('the connection is closed', () => client.socket.destroyed);
      expect(client.text().match(/HTTP\/1\.1 [^1]\d\d/g)).toEqual([
        'HTTP/1.1 401',
        'HTTP/1.1 200',
        'HTTP/1.1 401',
      ]);
      const probe = openRaw(gateway.adminUrl);
      probe.socket.end('GET /readyz HTTP/1.0\r\n\r\n'.repeat(1));
      await eventually('the probe is closed', () => probe.socket.destroyed);
      expect(probe.text()).toMatch(/^HTTP\/1\.1 200 OK[^]*"status":"ready"/);
    });

    test.each([
      ['closes', (socket: Socket) => void socket.destroy()],
      ['resets', (socket: Socket) => void socket.resetAndDestroy()],
    ])('has left if it %s the other side, too: its upstream is stopped', async (_name, leave) => {
      const { client } = await openRunningStream();
      upstream.play(() => {});
      const waiting = [whole, streaming].map((body) => {
        const { socket } = openRaw(gateway.url);
        socket.write(rawPost(chat, gateway.key, body));
        return socket;
      });
      await eventually('all upstreams are asked', () => upstream.running === 3);
      const before = upstream.aborted;
      for (const socket of [client.socket, ...waiting]) leave(socket);
      await eventually('all upstreams are stopped', () => upstream.aborted === before + 3);
    });
  });

  describe('a request that is refused before its body has arrived', () => {
    const head = (framing: string): string =>
      `POST ${chat} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`;

    test.each([
      ['a length', 'Content-Length: 999999'],
      ['chunks', 'Transfer-Encoding: chunked'],
    ])(
      'with %s gets an answer with connection: close, and its connection is closed',
      async (_name, framing) => {
        const client = openRaw(gateway.url);
        client.socket.write(head(framing));
        await eventually('the request is refused', () => client.text().includes('invalid_api_key'));
        expect(client.text()).toMatch(/^HTTP\/1\.1 401 [^]*\r\nconnection: close\r\n/i);
        await eventually('the connection is closed', () => client.socket.destroyed);
      },
    );

    test('can read its refusal, although it keeps sending for a while', async () => {
      const client = openRaw(gateway.url, { paused: true });
      const body = 'x'.repeat(100_000);
      client.socket.write(head(`Content-Length: ${2 * body.length}`) + body);
      await expectAlive();
      client.socket.write(body);
      client.socket.resume();
      await eventually('the connection is closed', () => client.socket.destroyed);
      expect(client.text()).toContain('invalid_api_key');
      expect(client.error()).toBeNull();
    });

    test('is not read further: only a little of an endless body is read', async () => {
      const client = openRaw(gateway.url);
      client.socket.write(head('Transfer-Encoding: chunked'));
      const chunk = Buffer.from(`10000\r\n${'x'.repeat(0x10000)}\r\n`);
      const feed = (): void => {
        while (!client.socket.destroyed && client.socket.write(chunk));
      };
      client.socket.on('drain', feed);
      feed();
      await eventually('the connection is closed', () => client.socket.destroyed);
      // The system buffers some megabytes on both sides of a connection; without the limit, 30 s of sending would be read.
      expect(client.socket.bytesWritten).toBeLessThan(32_000_000);
      expect(client.text()).toContain('invalid_api_key');
    });

    test.each([
      ['a wrong key', chat, 'sk-wrong', 'invalid_api_key'],
      ['no key', chat, '', 'invalid_api_key'],
      ['a path that does not exist', '/v1/nowhere', '', 'unknown_url'],
      ['a model that does not exist', chat, gateway.key, 'model_not_found'],
    ])(
      'because of %s keeps its connection when its body arrived with its head',
      async (_name, path, key, code) => {
        const client = openRaw(gateway.url);
        for (const number of [1, 2, 3]) {
          client.socket.write(rawPost(path, key, { ...streaming, model: 'none' }));
          await eventually(
            'the request is refused',
            () => count(client.text(), `"code":"${code}"`) === number,
          );
        }
        expect(client.text()).not.toMatch(/connection: close/i);
      },
    );
  });

  describe('pipelined requests', () => {
    test('in a small number are answered in order', async () => {
      upstream.play(async (response, request) => {
        const [, name = ''] = /"content":"(\w+)"/.exec(request.body) ?? [];
        await sayTexts([name])(response, request);
      });
      const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
      const client = openRaw(gateway.url);
      const ask = (content: string): string =>
        rawPost(chat, gateway.key, { model: 'small', messages: [{ role: 'user', content }] });
      client.socket.write(names.map(ask).join(''));
      await eventually('all are answered', () => count(client.text(), 'HTTP/1.1 200') === names.length);
      await eventually('the last one is there', () => client.text().includes('"h"'));
      const contents = [...client.text().matchAll(/"content":"(\w)"/g)].map(([, name]) => name);
      expect(contents).toEqual(names);
    });

    test('are all answered one by one, as long as the client reads the answers', async () => {
      const client = openRaw(gateway.url);
      for (let batch = 1; batch <= 20; batch++) {
        client.socket.write(models.repeat(10));
        await eventually('they are answered', () => count(client.text(), 'HTTP/1.1 401') === batch * 10);
      }
    });

    test('beyond a few stop reading from their connection until answers are sent', async () => {
      const gate = Promise.withResolvers<void>();
      upstream.play(async (response, request) => {
        await gate.promise;
        await sayTexts(['x'])(response, request);
      });
      const before = upstream.seen.length;
      const client = openRaw(gateway.url);
      // One by one, as several that arrive in one piece are all read.
      for (let sent = 1; sent <= 8; sent++) {
        client.socket.write(rawPost(chat, gateway.key, streaming));
        await eventually('it reaches the upstream', () => upstream.seen.length === before + sent);
      }
      for (let sent = 9; sent <= 30; sent++) {
        client.socket.write(rawPost(chat, gateway.key, streaming));
        await fetch(`${gateway.adminUrl}/healthz`);
      }
      await expectAlive();
      expect(upstream.seen.length - before).toBe(8);
      gate.resolve();
      await eventually('all are answered', () => count(client.text(), '[DONE]') === 30);
    });

    test('in too large a number in one piece close their connection before any of them runs', async () => {
      upstream.play(sayTexts(['x']));
      const before = upstream.seen.length;
      const client = openRaw(gateway.url);
      client.socket.write(rawPost(chat, gateway.key, streaming).repeat(20));
      await eventually('the connection is closed', () => client.isClosed());
      await expectAlive();
      expect([client.text(), upstream.seen.length - before]).toEqual(['', 0]);
    });

    test('in a large number close their connection', async () => {
      const client = openRaw(gateway.url, { paused: true });
      client.socket.write(models.repeat(1_000));
      await eventually('the connection is closed', async () => {
        await expectAlive();
        client.socket.resume();
        return client.socket.destroyed;
      });
      expect(count(client.text(), 'HTTP/1.1 ')).toBeLessThan(20);
      const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
      expect(text).toMatch(/textgate_connections_refused_total\{reason="pipelined"\} [1-9]/);
    });
  });

  test('every answer has x-content-type-options: nosniff', async () => {
    for (const url of [`${gateway.url}/v1/models`, `${gateway.url}/nowhere`, `${gateway.adminUrl}/metrics`])
      expect((await fetch(url)).headers.get('x-content-type-options')).toBe('nosniff');
  });
}

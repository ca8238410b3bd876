import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { StreamOutput } from '../../src/http/answers/stream-output.ts';
import { eventually } from '../support/eventually.ts';
import { propertyRun } from '../support/property-run.ts';
import { openRaw } from '../support/raw-socket.ts';

/** A server whose answers are written by the test; resolves with its address. */
async function serve(answer: (response: ServerResponse, path: string) => unknown): Promise<string> {
  const server = createServer(({ url = '' }, response) => void answer(response, url));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const turns = [
  (next: () => void): void => next(),
  (next: () => void): void => queueMicrotask(next),
  (next: () => void): void => process.nextTick(next),
  (next: () => void): void => void setImmediate(next),
];

describe('a streamed answer', () => {
  test('has its parts in order and whole, whenever they are written', async () => {
    let parts: readonly (readonly [text: string, turn: number])[] = [];
    const url = await serve((response) => {
      response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
      const output = new StreamOutput(response, true);
      const write = (at: number): void => {
        const part = parts[at];
        if (part === undefined) return void response.end('|end');
        output.write(part[0]);
        turns[part[1]]?.(() => write(at + 1));
      };
      write(0);
    });
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }),
      fc.constant('é語😀'.repeat(9_000)),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(text, fc.nat(3)), { minLength: 1, maxLength: 8 }),
        async (written) => {
          parts = written;
          const sent = await (await fetch(url)).text();
          expect(sent).toBe(`${written.map(([part]) => part).join('')}|end`);
        },
      ),
      propertyRun(200),
    );
  });

  test('waits behind the answer to an earlier request on its connection', async () => {
    const first = Promise.withResolvers<void>();
    const url = await serve(async (response, path) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      const output = new StreamOutput(response, true);
      output.write(`${path} one `);
      if (path === '/first') await first.promise;
      else setImmediate(() => setImmediate(first.resolve));
      output.write(`${path} two `);
      await new Promise(setImmediate);
      output.write(`${path} three`);
      response.end();
    });
    const raw = openRaw(url);
    raw.socket.write('GET /first HTTP/1.1\r\nHost: x\r\n\r\nGET /second HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually(
      'the second answer',
      () => raw.text().endsWith('0\r\n\r\n') && raw.text().includes('/second three'),
    );
    const bodies = raw
      .text()
      .replaceAll(/HTTP\/1\.1 200 OK\r\n(?:.+\r\n)+\r\n/g, '#')
      .replaceAll(/(?<=#|^)[\da-f]*\r\n|\r\n/gm, '');
    expect(bodies).toBe('#/first one /first two /first three#/second one /second two /second three');
  });

  test('to an HTTP/1.0 client has no chunks', async () => {
    const url = await serve((response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      const output = new StreamOutput(response, true);
      output.write('one ');
      setImmediate(() => {
        output.write('two');
        response.end();
      });
    });
    const raw = openRaw(url);
    raw.socket.write('GET / HTTP/1.0\r\n\r\n');
    await eventually('the end', () => raw.isClosed());
    expect(raw.text().split('\r\n\r\n')[1]).toBe('one two');
  });

  test.each([
    ['on our own listener', true],
    ['in another host', false],
  ])('says %s when its client does not keep up, and when it does again', async (_where, framesParts) => {
    let drained = 0;
    let waited = 0;
    const url = await serve(async (response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      const output = new StreamOutput(response, framesParts);
      for (let time = 0; time < 200; time++) {
        const full = output.write('é'.repeat(40_000));
        if (full === null) continue;
        waited++;
        await new Promise<void>((resolve) => full.once('drain', resolve));
        drained++;
      }
      response.end();
    });
    const raw = openRaw(url, { paused: true });
    raw.socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    await eventually('a full client', () => waited > 0);
    raw.socket.resume();
    await eventually('the end', () => raw.isClosed());
    expect(drained).toBe(waited);
    expect(raw.text().length).toBeGreaterThan(200 * 80_000);
  });

  test('leaves the way to the socket to the response where that is not ours', async () => {
    const written: string[] = [];
    const url = await serve((response) => {
      const write = response.write.bind(response);
      response.write = ((chunk: Uint8Array) => {
        written.push(Buffer.from(chunk).toString());
        return write(chunk);
      }) as typeof response.write;
      const output = new StreamOutput(response, false);
      output.write('one');
      setImmediate(() => {
        output.write('two');
        response.end();
      });
    });
    expect(await (await fetch(url)).text()).toBe('onetwo');
    expect(written).toEqual(['one', 'two']);
  });
});

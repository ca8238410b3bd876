import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { stampedText, streamOf, timedText, wholeOf } from '../simulator/frames.ts';
import { readSettings } from '../simulator/settings.ts';
import { machineMs } from '../simulator/times.ts';
import { Load } from './load.ts';
import type { LoadOrder, LoadResult } from './order.ts';

const answer = wholeOf(readSettings(''));

/** Serves each request, one read each, with a function that gets the socket and its number on that connection. */
async function serve(answerTo: (socket: Socket, request: number, bytes: Buffer) => void): Promise<number> {
  const server = createServer((socket) => {
    let requests = 0;
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes: Buffer) => answerTo(socket, requests++, bytes));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

function run(port: number, order: Partial<LoadOrder>): Promise<LoadResult> {
  const defaults: LoadOrder = {
    ports: [port],
    path: '/',
    headers: {},
    keys: [],
    body: '{}',
    requests: 1,
    atOnce: 1,
    startsPerSecond: null,
    events: null,
    stamps: null,
    readPauseMs: null,
    deadlineMs: 30_000,
  };
  return new Promise((resolve) => {
    void new Load({ ...defaults, ...order }, (report) => {
      if (report.kind === 'result') resolve(report);
    });
  });
}

describe('a load', () => {
  test('counts a request as failed whose fresh connection is closed without an answer', async () => {
    let connections = 0;
    const port = await serve((socket) => {
      connections++;
      socket.destroy();
    });
    expect(await run(port, {})).toMatchObject({
      answers: 0,
      failures: { 'connection broken': 1 },
      sentAgain: 0,
    });
    expect(connections).toBe(1);
  });

  test('sends a request again, and counts it, when a kept connection is closed before its answer', async () => {
    const port = await serve((socket, request) => {
      if (request === 0) socket.write(answer);
      else socket.destroy();
    });
    expect(await run(port, { requests: 3 })).toMatchObject({ answers: 3, failures: {}, sentAgain: 2 });
  });

  test('begins no further requests when it is cut off', async () => {
    let requests = 0;
    const port = await serve(() => requests++);
    const result = await run(port, { requests: 5, atOnce: 2, deadlineMs: 100 });
    expect(result.failures).toEqual({ 'open at the deadline': 2, 'not sent before the deadline': 3 });
    expect(requests).toBeLessThanOrEqual(2);
  });

  test('counts bytes after the end of an answer as a failure', async () => {
    const port = await serve((socket) => socket.write(Buffer.concat([answer, Buffer.from('x')])));
    expect(await run(port, {})).toMatchObject({ answers: 0, failures: { 'bytes after the end': 1 } });
  });

  describe('of streams whose texts say when they were written', () => {
    const { opening, ending } = streamOf(readSettings(''));
    const waysMs = [10, 20, 30];
    const answerIn = (socket: Socket, pieceBytes: number): void => {
      const nowMs = machineMs();
      const [first = 0, ...others] = waysMs.map((wayMs) => nowMs - wayMs);
      const texts = [timedText({ arrivedMs: nowMs, textMs: first }), ...others.map((ms) => stampedText(ms))];
      const bytes = Buffer.concat([opening, ...texts.map((text) => Buffer.from(text)), ending]);
      let at = 0;
      const next = (): void => {
        socket.write(bytes.subarray(at, at + pieceBytes));
        at += pieceBytes;
        if (at < bytes.length) setImmediate(next);
      };
      next();
    };

    test('times all of them, also those that the network cuts', async () => {
      const port = await serve((socket) => answerIn(socket, 37));
      const { eventWay, ...result } = await run(port, { requests: 2, events: 3 + 4, stamps: 3 });
      expect(result).toMatchObject({ answers: 2, failures: {} });
      expect(eventWay.p50).toBeGreaterThanOrEqual(20);
      expect(eventWay.max).toBeGreaterThanOrEqual(30);
      expect(eventWay.max).toBeLessThan(10_000);
    });

    test('counts an answer as failed that lacks the time of a text', async () => {
      const port = await serve((socket) => answerIn(socket, 4_096));
      expect(await run(port, { stamps: 4 })).toMatchObject({
        answers: 0,
        failures: { '3 texts with a time': 1 },
      });
    });

    test('looks for them only where it is asked to', async () => {
      const port = await serve((socket) => answerIn(socket, 4_096));
      const { answers, eventWay } = await run(port, {});
      expect(answers).toBe(1);
      expect(eventWay.p50).toBeNaN();
    });
  });

  test('presents each key in turn, and opens its connections to each port in turn', async () => {
    const seen: (string | undefined)[][] = [[], []];
    const ports = await Promise.all(
      seen.map((keys) =>
        serve((socket, _request, bytes) => {
          keys.push(/^authorization: Bearer (\w+)\r$/m.exec(bytes.toString())?.[1]);
          socket.write(answer);
        }),
      ),
    );
    const result = await run(0, { ports, keys: ['a', 'b', 'c'], requests: 6, atOnce: 2 });
    expect(result).toMatchObject({ answers: 6, failures: {} });
    const times = (key: string): number => seen.flat().filter((each) => each === key).length;
    expect(['a', 'b', 'c'].map(times)).toEqual([2, 2, 2]);
    expect(seen.every(({ length }) => length > 0)).toBe(true);
  });
});

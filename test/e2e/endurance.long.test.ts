import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { forkGateway } from '../support/forked-gateway.ts';
import type { ForkedGateway } from '../support/forked-gateway.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { chatFrames, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';

const leavers = 10_000;
const warmUpLeavers = 3_000;
const atATime = 100;
/** How many bytes the client reads one by one, while the upstream sends nothing. */
const bytesRead = 60;
/** How many bytes are read between two measurements of memory: each one collects all garbage of a process first. */
const bytesPerMeasurement = 10;
const mebibyte = 1_048_576;
/** How long the upstream may be read before it stands still, on a busy machine, in milliseconds. */
const patienceMs = 60_000;

let upstream: ScriptedUpstream;
beforeEach(async () => void (upstream = await startUpstream()));
afterEach(() => upstream.close());

const paths = [
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }] }],
  ['/v1/responses', { input: 'x' }],
] as const;

function requestBytes({ key }: ForkedGateway, endpoint: number, stream: boolean): string {
  const [path, text] = paths[endpoint % paths.length] ?? paths[0];
  const body = JSON.stringify({ model: 'small', stream, ...text });
  return (
    `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  );
}

function openSocket(url: string): Socket {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname).on('error', () => {});
}

/** One client, which disconnects within its request, after some bytes of the answer, or never. */
async function leave(gateway: ForkedGateway, random: () => number): Promise<void> {
  const socket = openSocket(gateway.url);
  const closed = once(socket, 'close');
  await once(socket, 'connect').catch(() => {});
  const stream = random() < 0.8;
  const bytes = requestBytes(gateway, Math.floor(random() * 2), stream);
  const moment = random();
  const leaving = (): void => void (random() < 0.5 ? socket.destroy() : socket.resetAndDestroy());
  if (moment < 0.2) socket.write(bytes.slice(0, Math.floor(random() * bytes.length)), leaving);
  else if (moment < 0.4) socket.write(bytes, leaving);
  else {
    let patience = stream ? Math.floor(random() * 4_000) : 0;
    socket.on('data', (part) => {
      patience -= part.length;
      if (patience <= 0 || part.includes('[DONE]') || part.includes('response.completed')) leaving();
    });
    socket.write(bytes);
  }
  await closed;
}

async function leaveMany(gateway: ForkedGateway, count: number, random: () => number): Promise<void> {
  let left = count;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await leave(gateway, random);
  };
  await Promise.all(Array.from({ length: atATime }, worker));
  await eventually('no request is in progress', async () => (await gateway.inFlight()) === 0);
}

describe('ten thousand clients that disconnect at random moments', () => {
  test('leave no request in progress, no busy upstream connection and no memory', async () => {
    const { random, seed } = randomNumbers();
    const frames = chatFrames(Array.from({ length: 20 }, (_, index) => `word ${index} `));
    upstream.play(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const frame of frames) {
        if (response.destroyed) return;
        await new Promise<void>((resolve) => response.write(frame, () => resolve()));
      }
      response.end();
    });
    const gateway = await forkGateway(upstream.url);
    await leaveMany(gateway, warmUpLeavers, random);
    const before = await gateway.memory();
    await leaveMany(gateway, leavers, random);
    await eventually('every upstream call is over', () => upstream.running === 0);
    await eventually('no upstream connection is left', async () => (await upstream.connections()) === 0);
    const after = await gateway.memory();
    const growth = after.heapUsed / before.heapUsed - 1;
    process.stdout.write(
      `${leavers} leavers (seed ${seed}): ${upstream.aborted} calls aborted, heap ${(growth * 100).toFixed(1)} %\n`,
    );
    // How many leave before the answer is over depends on the machine's speed.
    expect(upstream.aborted).toBeGreaterThan(leavers / 20);
    expect(growth).toBeLessThan(0.05);
  }, 120_000);
});

/** Waits until a response accepts more bytes, or is closed. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}

describe('a client that reads one byte at a time', () => {
  test.each([0, 1])(
    'uses no more memory than its buffers for an endless answer (endpoint %i)',
    async (endpoint) => {
      const frame = chatFrames(['x'.repeat(200)])[1] ?? '';
      const calls: ServerResponse[] = [];
      let sent = 0;
      upstream.play(async (response) => {
        calls.push(response.writeHead(200, { 'content-type': 'text/event-stream' }));
        while (!response.destroyed) {
          sent += frame.length;
          if (!response.write(frame)) await drained(response);
        }
      });
      const gateway = await forkGateway(upstream.url);
      const before = await gateway.memory();
      const socket = openSocket(gateway.url);
      let largest = 0;
      let reads = 0;
      const readOne = async (): Promise<void> => {
        socket.read(1);
        if (++reads % bytesPerMeasurement === 0) largest = Math.max(largest, (await gateway.memory()).rss);
      };
      await once(socket, 'connect');
      socket.pause();
      socket.write(requestBytes(gateway, endpoint, true));
      let seen = -1;
      let stoodFor = 0;
      await eventually(
        'the upstream has to wait',
        async () => {
          await readOne();
          stoodFor = sent > 0 && sent === seen ? stoodFor + 1 : 0;
          seen = sent;
          return stoodFor === bytesRead;
        },
        patienceMs,
      );
      expect(calls[0]?.writableNeedDrain).toBe(true);
      const growth = (largest - before.rss) / mebibyte;
      process.stdout.write(
        `an endless answer, read byte by byte: the upstream stands at ${(sent / mebibyte).toFixed(1)} MiB, RSS +${growth.toFixed(1)} MiB\n`,
      );
      expect(growth).toBeLessThan(30);
      socket.destroy();
      await eventually('the upstream call is over', () => upstream.running === 0);
    },
  );
});

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { forkGateway } from '../support/forked-gateway.ts';
import { leaveMany, openSocket, requestBytes, sayWords } from '../support/leaving-clients.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { chatFrames, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';

const leavers = 4_000;
const warmUpLeavers = 1_500;
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

describe('thousands of clients that disconnect at random moments', () => {
  test('leave no request in progress, no busy upstream connection and no memory', async () => {
    const { random, seed } = randomNumbers();
    upstream.play(sayWords);
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

/**
 * What a process holds, in bytes. Its resident set says less: it has the free pages too that V8 and the C library
 * keep after a burst, 10 to 60 MiB of them.
 */
function held({ heapUsed, external }: NodeJS.MemoryUsage): number {
  return heapUsed + external;
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
      const before = held(await gateway.memory());
      const socket = openSocket(gateway.url);
      let largest = 0;
      let reads = 0;
      const readOne = async (): Promise<void> => {
        socket.read(1);
        if (++reads % bytesPerMeasurement === 0) largest = Math.max(largest, held(await gateway.memory()));
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
      const growth = (largest - before) / mebibyte;
      process.stdout.write(
        `an endless answer, read byte by byte: the upstream stands at ${(sent / mebibyte).toFixed(1)} MiB, memory +${growth.toFixed(1)} MiB\n`,
      );
      expect(growth).toBeLessThan(15);
      socket.destroy();
      await eventually('the upstream call is over', () => upstream.running === 0);
    },
  );
});

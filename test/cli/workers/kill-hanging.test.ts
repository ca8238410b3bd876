import cluster from 'node:cluster';
import { EventEmitter } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { forkWorker } from '../../../src/cli/workers/fork-worker.ts';
import type { WorkerProcess } from '../../../src/cli/workers/fork-worker.ts';
import { Handovers } from '../../../src/cli/workers/handovers.ts';
import { killHanging } from '../../../src/cli/workers/kill-hanging.ts';
import type { Answer, ToWorker } from '../../../src/cli/workers/messages.ts';
import { whyNoWorkerReady } from '../../../src/cli/workers/ask-all.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import type { FakeClock } from '../../support/fake-clock.ts';

/** The time between two questions, in milliseconds. */
const askEveryMs = 5_000;

/** The process of a worker whose messages take `answerMs` milliseconds; with `null`, it never says anything. */
function forkProcess(clock: FakeClock, answerMs: number | null, hasStarted = true) {
  const kill = vi.fn<() => boolean>(() => true);
  const child = Object.assign(new EventEmitter(), {
    id: 1,
    process: Object.assign(new EventEmitter(), { pid: 1, kill, send: () => true }),
    isConnected: () => true,
    send(message: ToWorker): void {
      if (message.kind !== 'question' || answerMs === null) return;
      const { id } = message;
      clock.schedule(answerMs, () => child.emit('message', { kind: 'answer', id, answer: null }));
    },
  });
  vi.spyOn(cluster, 'fork').mockReturnValueOnce(child as never);
  const ports = { clock, answer: async () => null, handovers: new Handovers(() => false) };
  const worker = forkWorker({ isFirst: true, count: 1, peerToken: 'secret' }, ports);
  if (hasStarted) child.emit('message', { kind: 'started' });
  return { worker, kills: () => kill.mock.calls.length };
}

test('a worker that says nothing to six questions in a row is killed, again and again if it does not end, and told once', () => {
  const clock = createFakeClock();
  const [hanging, starting] = [forkProcess(clock, null), forkProcess(clock, null, false)];
  const told: (readonly [WorkerProcess, number])[] = [];
  killHanging(
    () => [hanging.worker, starting.worker],
    clock,
    (worker, silentMs) => void told.push([worker, silentMs]),
  );
  const kills: (readonly number[])[] = [];
  for (let round = 1; round <= 9; round++) {
    clock.advance(askEveryMs);
    kills.push([hanging.kills(), starting.kills()]);
  }
  // It is asked in the first round, and six times without an answer in the seventh.
  expect(kills.map(([first]) => first)).toEqual([0, 0, 0, 0, 0, 0, 1, 2, 3]);
  expect(kills.map(([, second]) => second)).toEqual(Array.from({ length: 9 }, () => 0));
  expect(told).toEqual([[hanging.worker, 30_000]]);
});

test.each([100, 2_500, 7_500, 24_000])(
  'a worker whose answers take %i ms is slow, and not killed',
  async (answerMs) => {
    const clock = createFakeClock();
    const slow = forkProcess(clock, answerMs);
    killHanging(
      () => [slow.worker],
      clock,
      () => {},
    );
    // In steps, between which promises that wait for an answer go on.
    for (let step = 1; step <= 220; step++) {
      clock.advance(500);
      await setImmediate();
    }
    expect(slow.kills()).toBe(0);
  },
);

test('workers are ready as soon as one of them says so, although another one does not answer', async () => {
  const silent = { ask: () => new Promise<Answer | undefined>(() => {}) };
  expect(await whyNoWorkerReady([silent, { ask: async () => 'draining' }, { ask: async () => null }])).toBe(
    null,
  );
});

test('workers of which none is ready say why, and those that say nothing count as not ready', async () => {
  const late = { ask: async () => undefined };
  expect(await whyNoWorkerReady([late, { ask: async () => 'draining' }])).toBe('draining');
  expect(await whyNoWorkerReady([late])).toBe('no answer');
});

import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { WorkerProcess } from '../../../src/cli/workers/fork-worker.ts';
import { killHanging } from '../../../src/cli/workers/kill-hanging.ts';
import type { Answer } from '../../../src/cli/workers/messages.ts';
import { whyNoWorkerReady } from '../../../src/cli/workers/why-no-worker-ready.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

/** A worker that gives an answer to every question; with `undefined`, none in time. */
function createWorker(hasStarted: boolean) {
  const state = { answer: undefined as Answer | undefined, kills: 0 };
  const worker = {
    hasStarted,
    ask: async () => state.answer,
    kill: () => void state.kills++,
  } as unknown as WorkerProcess;
  return { state, worker };
}

/** The time between two questions, in milliseconds. */
const askEveryMs = 5_000;

test('a worker that leaves six questions in a row unanswered is killed once; one that starts late or answers is not', async () => {
  const clock = createFakeClock();
  const [hanging, slow, starting] = [createWorker(true), createWorker(true), createWorker(false)];
  const all = [hanging.worker, slow.worker, starting.worker];
  const told: number[] = [];
  killHanging(
    () => all,
    clock,
    (_worker, silentMs) => void told.push(silentMs),
  );
  const rounds: (readonly number[])[] = [];
  for (let round = 1; round <= 14; round++) {
    slow.state.answer = round % 6 === 0 ? null : undefined;
    clock.advance(askEveryMs);
    await setImmediate();
    rounds.push([hanging, slow, starting].map(({ state }) => state.kills));
  }
  expect(rounds.slice(0, 5)).toEqual(Array.from({ length: 5 }, () => [0, 0, 0]));
  expect(rounds.slice(5)).toEqual(Array.from({ length: 9 }, () => [1, 0, 0]));
  expect(told).toEqual([30_000]);
});

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

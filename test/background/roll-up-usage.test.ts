import { expect, onTestFinished, test } from 'vitest';
import { keepRollingUp } from '../../src/background/roll-up-usage.ts';
import type { Pause } from '../../src/domain/pause.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const nowMs = Date.UTC(2027, 5, 5, 12);

/** A roller whose runs are noted; `rollUp` does what a run does. */
function startRoller(rollUp: (pause: Pause) => Promise<number>, isOurs = true) {
  const clock = createFakeClock(nowMs);
  const runs: number[] = [];
  const faults: string[] = [];
  const roller = keepRollingUp(
    { rollUp: (atMs, pause) => (runs.push(atMs), rollUp(pause)) },
    {
      ready: Promise.resolve(),
      clock,
      duty: { isOurs: async () => isOurs },
      onFault: (message, error) => void faults.push(`${message}: ${String(error)}`),
    },
  );
  onTestFinished(() => roller.stop());
  return { clock, runs, faults, roller };
}

test('usage is rolled up half a minute after the start, and every ten minutes', async () => {
  const { clock, runs } = startRoller(async () => 1);
  await Promise.resolve();
  clock.advance(29_999);
  expect(runs).toEqual([]);
  clock.advance(1);
  await eventually('the run', () => runs.length === 1 && clock.scheduled === 1);
  clock.advance(600_000);
  await eventually('the run', () => runs.length === 2);
  expect(runs).toEqual([nowMs + 30_000, nowMs + 630_000]);
});

test('usage is rolled up by the process alone that does it for all', async () => {
  const { clock, runs } = startRoller(async () => 1, false);
  await Promise.resolve();
  clock.advance(30_000);
  await eventually('the run', () => clock.scheduled === 1);
  expect(runs).toEqual([]);
});

test('a run that fails is reported, and tried again', async () => {
  const { clock, runs, faults } = startRoller(async () => Promise.reject(new Error('no disk')));
  await Promise.resolve();
  clock.advance(30_000);
  await eventually('the run', () => faults.length === 1 && clock.scheduled === 1);
  clock.advance(600_000);
  await eventually('the run', () => runs.length === 2);
  expect(faults[0]).toBe('usage could not be rolled up: it is tried again in ten minutes: Error: no disk');
});

test('a run ends at its next pause when the process stops, and is no fault', async () => {
  let steps = 0;
  const { clock, faults, roller } = startRoller(async (pause) => {
    for (;;) {
      steps++;
      await pause();
    }
  });
  await Promise.resolve();
  clock.advance(30_000);
  await eventually('the run', () => steps > 0);
  await roller.stop();
  const before = steps;
  clock.advance(60_000);
  expect([steps, faults]).toEqual([before, []]);
});

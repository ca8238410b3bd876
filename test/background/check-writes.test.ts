import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createWriteCheck } from '../../src/background/check-writes.ts';
import { createFakeClock } from '../support/fake-clock.ts';

function start() {
  const clock = createFakeClock();
  const state: { fault: string | null; answers: boolean; checks: number } = {
    fault: null,
    answers: true,
    checks: 0,
  };
  const changes: (string | null)[] = [];
  const held: (() => void)[] = [];
  const records = {
    async checkWrites() {
      state.checks++;
      if (!state.answers) await new Promise<void>((resolve) => held.push(resolve));
      if (state.fault !== null) throw new Error(state.fault);
    },
    get writeFault() {
      return state.fault;
    },
  };
  const check = createWriteCheck(records, clock, (fault) => void changes.push(fault));
  return { check, clock, state, changes, held };
}

test('the check of an idle service makes one write a second at most, and reports each change once', async () => {
  const { check, clock, state, changes } = start();
  for (let probe = 0; probe < 20; probe++) expect(await check.fault()).toBeNull();
  expect(state.checks).toBe(1);
  state.fault = 'its disk is full';
  for (let second = 0; second < 5; second++) {
    clock.advance(1_000);
    expect(await check.fault()).toBe('its disk is full');
  }
  expect([state.checks, changes]).toEqual([6, ['its disk is full']]);
  state.fault = null;
  clock.advance(1_000);
  expect(await check.fault()).toBeNull();
  expect(changes).toEqual(['its disk is full', null]);
});

test('a probe is answered within a second when the database does not answer, and starts no second write', async () => {
  const { check, clock, state, held } = start();
  state.answers = false;
  const probed = [check.fault(), check.fault()];
  await setImmediate();
  clock.advance(1_000);
  expect(await Promise.all(probed)).toEqual(['it takes too long to answer', 'it takes too long to answer']);
  clock.advance(5_000);
  const later = check.fault();
  clock.advance(0);
  expect(await later).toBe('it takes too long to answer');
  expect(state.checks).toBe(1);
  state.answers = true;
  held[0]?.();
  await setImmediate();
  expect(await check.fault()).toBeNull();
});

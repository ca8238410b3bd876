import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { followSecret } from '../../src/background/follow-secret.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const readAgainMs = 2_000;

function start() {
  const clock = createFakeClock();
  const state: { secret: string | Error } = { secret: 'first' };
  const reports: string[] = [];
  const followed = followSecret('first', {
    clock,
    async read() {
      if (state.secret instanceof Error) throw state.secret;
      return state.secret;
    },
    onFault: (error) => void reports.push(String(error)),
    onRecovery: () => void reports.push('recovered'),
  });
  const pass = async (): Promise<void> => {
    clock.advance(readAgainMs);
    await setImmediate();
  };
  return { clock, state, reports, followed, pass };
}

test('a secret is replaced when it is read again', async () => {
  const { state, followed, pass, reports } = start();
  state.secret = 'second';
  expect(followed.current).toBe('first');
  await pass();
  expect(followed.current).toBe('second');
  state.secret = 'third';
  await pass();
  expect([followed.current, reports]).toEqual(['third', []]);
});

test('the last secret stays in use while it can not be read, which is reported once, as is its return', async () => {
  const { state, followed, pass, reports } = start();
  state.secret = new Error('gone');
  for (let times = 0; times < 3; times++) await pass();
  expect([followed.current, reports]).toEqual(['first', ['Error: gone']]);
  state.secret = 'second';
  for (let times = 0; times < 3; times++) await pass();
  expect([followed.current, reports]).toEqual(['second', ['Error: gone', 'recovered']]);
  state.secret = new Error('gone again');
  await pass();
  expect(reports).toEqual(['Error: gone', 'recovered', 'Error: gone again']);
});

test('a secret that is not followed any more is not read again', async () => {
  const { clock, state, followed, pass } = start();
  followed.stop();
  state.secret = 'second';
  await pass();
  expect([followed.current, clock.scheduled]).toEqual(['first', 0]);
});

import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { TimeLimit } from '../../src/domain/time-limit.ts';
import type { Wait } from '../../src/domain/time-limit.ts';
import { createFakeClock } from '../support/fake-clock.ts';

function start() {
  const clock = createFakeClock();
  const limit = new TimeLimit(100, clock, () => new Error('too late'));
  /** Asks for an answer that comes when the test gives it. */
  const ask = () => {
    const answer = Promise.withResolvers<string>();
    let wait: Wait = { isOver: false };
    const state = { is: 'waits' };
    limit
      .bound((given) => {
        wait = given;
        return answer.promise;
      })
      .then(
        (result) => (state.is = result),
        (error: unknown) => (state.is = String(error)),
      );
    return { answer, state, isOver: () => wait.isOver };
  };
  return { clock, ask };
}

describe('a time limit', () => {
  test('serves all answers with one timer, and ends each wait after its own time', async () => {
    const { clock, ask } = start();
    const first = ask();
    clock.advance(60);
    const second = ask();
    expect(clock.scheduled).toBe(1);
    clock.advance(39);
    await setImmediate();
    expect([first.state.is, first.isOver()]).toEqual(['waits', false]);
    clock.advance(1);
    await setImmediate();
    expect([first.state.is, first.isOver()]).toEqual(['Error: too late', true]);
    expect([second.state.is, clock.scheduled]).toEqual(['waits', 1]);
    clock.advance(60);
    await setImmediate();
    expect([second.state.is, clock.scheduled]).toEqual(['Error: too late', 0]);
  });

  test('passes on an answer or a failure that comes in time, and keeps no timer', async () => {
    const { clock, ask } = start();
    const [good, bad] = [ask(), ask()];
    good.answer.resolve('done');
    bad.answer.reject(new Error('full'));
    await setImmediate();
    expect([good.state.is, bad.state.is, clock.scheduled]).toEqual(['done', 'Error: full', 0]);
    clock.advance(100);
    expect([good.isOver(), bad.isOver()]).toEqual([false, false]);
  });

  test('waits no shorter for an answer that is asked for while older ones end', async () => {
    const { clock, ask } = start();
    const first = ask();
    clock.advance(50);
    const second = ask();
    first.answer.resolve('done');
    await setImmediate();
    clock.advance(99);
    await setImmediate();
    expect(second.state.is).toBe('waits');
    clock.advance(1);
    await setImmediate();
    expect(second.state.is).toBe('Error: too late');
  });

  test('takes no notice of an answer, or a failure, that comes too late', async () => {
    const { clock, ask } = start();
    const [good, bad] = [ask(), ask()];
    clock.advance(100);
    good.answer.resolve('done');
    bad.answer.reject(new Error('full'));
    await setImmediate();
    expect([good.state.is, bad.state.is]).toEqual(['Error: too late', 'Error: too late']);
  });
});

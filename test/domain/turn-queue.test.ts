import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createTurnQueue } from '../../src/domain/limits/turn-queue.ts';
import { createFakeClock } from '../support/fake-clock.ts';

describe('a queue of turns', () => {
  test('does one piece of work at a time, in the order of arrival, also after one that fails', async () => {
    const queue = createTurnQueue(createFakeClock());
    const order: string[] = [];
    const work = (name: string) => async (): Promise<string> => {
      order.push(`${name} begins`);
      await setImmediate();
      order.push(`${name} ends`);
      if (name === 'a') throw new Error('a fails');
      return name;
    };
    const results = await Promise.allSettled(['a', 'b', 'c'].map((name) => queue.run(work(name))));
    expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
    expect(results.map((one) => (one.status === 'fulfilled' ? one.value : 'failed'))).toEqual([
      'failed',
      'b',
      'c',
    ]);
  });

  test('refuses work at once when a hundred pieces wait, and waiting work after ten seconds', async () => {
    const clock = createFakeClock();
    const queue = createTurnQueue(clock);
    const first = Promise.withResolvers<string>();
    const running = queue.run(() => first.promise);
    let begun = 0;
    const waiting = Array.from({ length: 100 }, () => queue.run(async () => begun++));
    expect(await queue.run(async () => begun++)).toBeNull();
    clock.advance(10_000);
    expect(await Promise.all(waiting)).toEqual(waiting.map(() => null));
    expect([begun, clock.scheduled]).toEqual([0, 0]);
    first.resolve('done');
    expect(await running).toBe('done');
    expect(await queue.run(async () => 'next')).toBe('next');
  });
});

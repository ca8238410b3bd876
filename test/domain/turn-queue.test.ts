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
    const results = await Promise.allSettled(['a', 'b', 'c'].map((name) => queue.run('one', work(name))));
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
    const running = queue.run('one', () => first.promise);
    let begun = 0;
    const waiting = Array.from({ length: 100 }, () => queue.run('one', async () => begun++));
    expect(await queue.run('one', async () => begun++)).toBeNull();
    clock.advance(10_000);
    expect(await Promise.all(waiting)).toEqual(waiting.map(() => null));
    expect([begun, clock.scheduled]).toEqual([0, 0]);
    // Those that have gone leave their places to others.
    const later = queue.run('one', async () => 'later');
    first.resolve('done');
    expect(await running).toBe('done');
    // It took ten seconds, and is followed by the longest rest.
    clock.advance(1_000);
    expect(await later).toBe('later');
    expect(await queue.run('one', async () => 'next')).toBe('next');
  });

  test('gives each owner a turn before any has its second one', async () => {
    const queue = createTurnQueue(createFakeClock());
    const order: string[] = [];
    const run = (owner: string) => queue.run(owner, async () => void order.push(owner));
    await Promise.all(['a', 'a', 'a', 'a', 'b', 'c', 'b'].map(run));
    expect(order).toEqual(['a', 'a', 'b', 'c', 'a', 'b', 'a']);
  });

  test('rests nine times as long as the work took, and a second at most, before the next one begins', async () => {
    const clock = createFakeClock();
    const queue = createTurnQueue(clock);
    const begun: string[] = [];
    const work = (name: string, tookMs: number) => async (): Promise<void> => {
      begun.push(name);
      clock.advance(tookMs);
    };
    await queue.run('a', work('short', 10));
    const waiting = [queue.run('a', work('long', 500)), queue.run('b', work('last', 0))];
    await setImmediate();
    expect([begun, clock.nextInMs]).toEqual([['short'], 90]);
    clock.advance(90);
    await waiting[0];
    expect([begun, clock.nextInMs]).toEqual([['short', 'long'], 1_000]);
    clock.advance(1_000);
    await waiting[1];
    expect(begun).toEqual(['short', 'long', 'last']);
  });

  test('holds refusals back for a second, and no more than a thousand at once', async () => {
    const clock = createFakeClock();
    const queue = createTurnQueue(clock);
    let sent = 0;
    const held = Array.from({ length: 1_000 }, () => queue.holdBack().then(() => sent++));
    await queue.holdBack();
    clock.advance(999);
    await setImmediate();
    expect(sent).toBe(0);
    clock.advance(1);
    await Promise.all(held);
    expect([sent, clock.scheduled]).toEqual([1_000, 0]);
  });
});

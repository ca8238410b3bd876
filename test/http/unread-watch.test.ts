import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createUnreadWatch } from '../../src/http/connections/unread-watch.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const [maxUnreadMs, checkMs] = [12_000, 5_000];

/** An answer whose socket says what the test wants of it. */
class Answer extends EventEmitter {
  readonly socket = { bytesWritten: 0, writableLength: 0 };
  destroyed = false;

  destroy(): void {
    this.destroyed = true;
    queueMicrotask(() => this.emit('close'));
  }

  /** So many bytes are written, of which the system takes no more than it has sent to the client. */
  stand(sentBytes: number, unsentBytes: number): void {
    Object.assign(this.socket, { bytesWritten: sentBytes + unsentBytes, writableLength: unsentBytes });
  }
}

function open(limitMs = maxUnreadMs) {
  const clock = createFakeClock();
  const watch = createUnreadWatch(clock, limitMs);
  const answer = (sentBytes = 0, unsentBytes = 0): Answer => {
    const made = new Answer();
    made.stand(sentBytes, unsentBytes);
    watch(made as unknown as ServerResponse);
    return made;
  };
  return { clock, watch, answer };
}

describe('the watch of unread answers', () => {
  test('ends an answer whose client reads nothing for the limit, at the next check', () => {
    const { clock, answer } = open();
    const unread = answer(100, 50);
    clock.advance(2 * checkMs);
    expect(unread.destroyed).toBe(false);
    clock.advance(checkMs);
    expect(unread.destroyed).toBe(true);
  });

  test('checks as often as the limit where that is shorter', () => {
    const { clock, answer } = open(1_000);
    const unread = answer(100, 50);
    clock.advance(999);
    expect(unread.destroyed).toBe(false);
    clock.advance(1);
    expect(unread.destroyed).toBe(true);
  });

  test('counts anew whenever the client reads on, or has read all', () => {
    const { clock, answer } = open();
    const [slow, quick] = [answer(100, 50), answer(100, 0)];
    for (let sent = 101; sent < 120; sent++) {
      slow.stand(sent, 50);
      clock.advance(checkMs);
    }
    quick.stand(100, 50);
    clock.advance(2 * checkMs);
    expect([slow.destroyed, quick.destroyed]).toEqual([false, false]);
    clock.advance(checkMs);
    expect([slow.destroyed, quick.destroyed]).toEqual([true, true]);
  });

  test('gives an answer of a megabyte four times as long, as the system reports in large steps', () => {
    const { clock, answer } = open();
    const [large, small] = [answer(1_000_000, 50), answer(999_999, 50)];
    clock.advance(4 * maxUnreadMs - checkMs);
    expect([large.destroyed, small.destroyed]).toEqual([false, true]);
    clock.advance(2 * checkMs);
    expect(large.destroyed).toBe(true);
  });

  test('has one timer for all answers, and none without any', async () => {
    const { clock, answer } = open();
    const answers = [answer(), answer()];
    expect(clock.scheduled).toBe(1);
    for (const each of answers) each.destroy();
    await setImmediate();
    expect(clock.scheduled).toBe(0);
    const later = answer(100, 50);
    clock.advance(3 * checkMs);
    await setImmediate();
    expect([later.destroyed, clock.scheduled]).toEqual([true, 0]);
  });

  test('watches no answer that has ended', () => {
    const { clock, watch } = open();
    const ended = new Answer();
    ended.destroy();
    watch(ended as unknown as ServerResponse);
    expect(clock.scheduled).toBe(0);
  });
});

import { expect, test } from 'vitest';
import { MinuteWindow } from '../../../src/domain/upstream-limiter/minute-window.ts';

test('a window whose sum is never read keeps what still counts, and not all that ever did', () => {
  const window = new MinuteWindow();
  for (let count = 0; count < 100_000; count++) window.add(1, count * 100);
  expect(window.size).toBeLessThan(5_000);
  expect(window.sum(100_000 * 100)).toBe(609);
});

test('an amount that is taken back counts no more, and the others as long as before', () => {
  const window = new MinuteWindow();
  window.add(1, 0);
  window.add(1, 1_000);
  window.add(1, 2_000);
  window.remove(1, 1_000, 3_000);
  // Of what is over, and of what was never added, there is nothing to take back.
  window.remove(1, 1_500, 3_000);
  expect(window.sum(3_000)).toBe(2);
  expect(window.overAtMs(2, 3_000)).toBe(63_000);
  window.remove(1, 0, 61_000);
  expect(window.sum(61_000)).toBe(1);
});

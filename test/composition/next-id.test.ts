import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { nextId } from '../../src/composition/next-id.ts';

/** More than twice as many as are drawn from the system at a time. */
const idCount = 600;

/** The digits of the time in front. */
const timeDigits = 12;

const startMs = Date.UTC(2026, 10, 22);

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: startMs }));
afterEach(() => void vi.useRealTimers());

const draw = (): readonly string[] => Array.from({ length: idCount }, () => nextId());

test('ids of one millisecond are whole and differ in their random part, also where more of it is drawn', () => {
  const ids = draw();
  expect(ids.filter((id) => !/^[0-9a-f]{32}$/.test(id))).toEqual([]);
  expect(new Set(ids.map((id) => id.slice(timeDigits))).size).toBe(idCount);
  expect(new Set(ids.map((id) => Number.parseInt(id.slice(0, timeDigits), 16)))).toEqual(new Set([startMs]));
});

test('no random byte of an id is left out: each has many values', () => {
  const ids = draw();
  for (let at = timeDigits; at < 32; at += 2)
    expect(new Set(ids.map((id) => id.slice(at, at + 2))).size).toBeGreaterThan(100);
});

test.each([startMs, 0xfff, 0xffff_ffff, 16 ** timeDigits - 2])(
  'an id of a later millisecond than %d is sorted behind, as text',
  (nowMs) => {
    vi.setSystemTime(nowMs);
    const earlier = draw();
    vi.setSystemTime(nowMs + 1);
    const later = draw();
    expect([...earlier, ...later].toSorted().slice(0, idCount)).toEqual(earlier.toSorted());
    expect(later.every((id) => id.length === 32)).toBe(true);
  },
);

test('an id has the time that is given, in whole milliseconds', () => {
  expect(nextId(startMs - 7.5)).toMatch(/^[0-9a-f]{32}$/);
  expect(Number.parseInt(nextId(startMs - 7.5).slice(0, timeDigits), 16)).toBe(startMs - 8);
});

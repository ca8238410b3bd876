import { expect, test } from 'vitest';
import type { Observed, Seen } from './observations.ts';
import { overlapMs, pausesOf } from './overlaps.ts';

/** What was seen, each with its time in milliseconds, in this order. */
function inOrder(...seen: readonly (readonly [atMs: number, seen: Seen])[]): readonly Observed[] {
  const stamp = (atMs: number, one: Seen, at: number): Observed => ({ ...one, at, atMs });
  return seen.map(([atMs, one], at) => stamp(atMs, one, at));
}

const called = (call: number, process: number): Seen => ({ what: 'called', call, process });
const cutOff = (call: number, process: number): Seen => ({ what: 'cut off', call, process });
const twoCalls = (secondMs: number, firstEndsMs: number): readonly Observed[] =>
  inOrder([0, called(1, 1)], [secondMs, called(2, 2)], [firstEndsMs, cutOff(1, 1)], [60_000, cutOff(2, 2)]);

test.each<[string, number, readonly Observed[], readonly Observed[]]>([
  ['one after the other', 0, twoCalls(5_000, 5_000), []],
  ['at a time', 2_000, twoCalls(5_000, 7_000), []],
  [
    'at a time, while the process of one stands still',
    0,
    twoCalls(17_000, 20_900),
    inOrder([1_000, { what: 'stopped', process: 1 }], [20_000, { what: 'goes on', process: 1 }]),
  ],
  [
    'at a time, for longer than a second after the process of one went on',
    500,
    twoCalls(17_000, 21_500),
    inOrder([1_000, { what: 'stopped', process: 1 }], [20_000, { what: 'goes on', process: 1 }]),
  ],
  [
    'at a time, while another process stands still',
    3_000,
    twoCalls(17_000, 20_000),
    inOrder([1_000, { what: 'stopped', process: 3 }], [20_000, { what: 'goes on', process: 3 }]),
  ],
  [
    'at a time, while the process of one is cut off from the database',
    3_000,
    twoCalls(17_000, 20_000),
    inOrder([1_000, { what: 'loses database', process: 1 }], [20_000, { what: 'has database', process: 1 }]),
  ],
])('two calls of a question %s overlap for %s ms', (_when, expectedMs, calls, ofAll) => {
  expect(overlapMs(calls, pausesOf(ofAll))).toBe(expectedMs);
});

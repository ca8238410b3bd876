import { expect, test } from 'vitest';
import { describeEvent } from '../../model/claim-log.ts';
import { readLog } from '../../model/read-log.ts';
import type { Observed, Seen } from './observations.ts';
import { commonEvents, logOf } from './question-log.ts';

/** What was seen, each with its time in seconds, in this order from a place on. */
function inOrder(
  from: number,
  ...seen: readonly (readonly [atS: number, seen: Seen])[]
): readonly Observed[] {
  const stamp = (atS: number, one: Seen, at: number): Observed => ({ ...one, at, atMs: atS * 1_000 });
  return seen.map(([atS, one], at) => stamp(atS, one, from + at));
}

const ofAll = inOrder(
  0,
  [0, { what: 'started', process: 1 }],
  [0, { what: 'started', process: 2 }],
  [10, { what: 'stopped', process: 1 }],
  [28, { what: 'goes on', process: 1 }],
);
/** Its process stands still for longer than its lease; another one runs it anew at a time, in seconds. */
const ranAnew = (atS: number): readonly Observed[] =>
  inOrder(
    100,
    [9, { what: 'sent', asked: 1, process: 1, asker: 0 }],
    [9, { what: 'called', call: 2, process: 1 }],
    [12, { what: 'left', asked: 1 }],
    [atS, { what: 'sent', asked: 3, process: 2, asker: 0 }],
    [atS, { what: 'called', call: 4, process: 2 }],
    [28.5, { what: 'cut off', call: 2, process: 1 }],
    [29, { what: 'answered', call: 4, process: 2 }],
    [29, { what: 'served', asked: 3 }],
  );

test('what was observed of a question is a log of its claim, in which a lease is over in its time', () => {
  const log = logOf(ranAnew(26), commonEvents(ofAll, false), 1);
  expect(log.map(describeEvent)).toEqual([
    'process 1 starts',
    'process 2 starts',
    'client 1 asks process 1',
    'call 2 begins in process 1',
    'process 1 stands still',
    'client 1 leaves',
    'process 1 may lose its lease',
    'client 3 asks process 2',
    'call 4 begins in process 2',
    'process 1 goes on',
    'call 2 is cut off',
    'call 4 is answered',
    'client 3 is served',
    'the claim is charged 1 times',
  ]);
  expect(readLog(log)?.refused).toBeNull();
});

test('a run that begins before the lease of the first one can be over is refused', () => {
  const reading = readLog(logOf(ranAnew(15), commonEvents(ofAll, false), 1));
  expect(reading?.refused).toEqual({ what: 'is called', call: 4, process: 2 });
});

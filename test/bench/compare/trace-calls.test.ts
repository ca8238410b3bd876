import { expect, test } from 'vitest';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { readCalls, traceAbsence, traceCalls } from './trace-calls.ts';

test.each([
  ['with the time of each call in all', '         4'],
  ['of a release that leaves it out', '          '],
])('adds up the calls of a summary, those that failed included, %s', (_name, each) => {
  const summary = `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 61.02    0.001820          36        50           epoll_pwait
 38.98    0.001163          16        71        21 read
  0.00    0.000000           0         3         3 pread64
------ ----------- ----------- --------- --------- ----------------
100.00    0.002983  ${each}       124        24 total
`;
  expect(readCalls(summary)).toBe(124);
});

test.runIf(traceAbsence() === null)('says why the calls of a process are not counted', async () => {
  // Above the largest number that a process can have.
  expect(await traceCalls([2 ** 22 + 1], makeTemporaryFolder())).toContain('No such process');
});

test('finds no calls in a summary of none', () => {
  expect(readCalls('')).toBe(0);
});

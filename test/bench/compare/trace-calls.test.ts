import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { readCalls, traceAbsence, traceCalls } from './trace-calls.ts';

test.each([
  ['a count', '12345,,raw_syscalls:sys_enter,600123,100.00,,', 12_345],
  ['none of a process that had no time', '<not counted>,,raw_syscalls:sys_enter,0,100.00,,', null],
  ['none of an empty file', '', null],
])('reads %s as perf writes it', (_name, line, count) => {
  expect(readCalls(`# started on Sat Nov 28 09:30:11 2026\n\n${line}\n`)).toBe(count);
});

const absence = traceAbsence();
const absent = absence === null ? '' : ` (${absence})`;

test.skipIf(absence !== null)(`says why the calls of a process are not counted${absent}`, async () => {
  // Above the largest number that a process can have.
  expect(await traceCalls([2 ** 22 + 1], makeTemporaryFolder())).toContain('Problems finding threads');
});

test.skipIf(absence !== null)(`counts the calls of a process${absent}`, async () => {
  const trace = await traceCalls([process.pid], makeTemporaryFolder());
  if (typeof trace === 'string') throw new Error(trace);
  await setTimeout(1);
  for (let count = 0; count < 1_000; count++) readFileSync('/proc/self/stat');
  // It is opened, looked at, read and closed.
  expect(await trace.end()).toBeGreaterThan(4_000);
});

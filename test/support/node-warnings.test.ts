import { spawnSync } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { refuseWarnings, warningsIn } from './node-warnings.ts';

test('a warning of Node in a test is refused, once', async () => {
  const emitter = new EventEmitter();
  for (let number = 0; number <= EventEmitter.defaultMaxListeners; number++) emitter.on('x', () => {});
  await setImmediate();
  expect(refuseWarnings).toThrow('MaxListenersExceededWarning');
  expect(refuseWarnings).not.toThrow();
});

test('a warning of Node in what a process under test has printed is found', () => {
  const program = "process.emitWarning('old', 'DeprecationWarning', 'DEP9999'); console.error('a line')";
  const { stderr } = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' });
  expect(stderr).toContain('a line');
  expect(warningsIn(stderr)).toEqual([
    expect.stringMatching(/^\(node:\d+\) \[DEP9999\] DeprecationWarning: old$/),
  ]);
});

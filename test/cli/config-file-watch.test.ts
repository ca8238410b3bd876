import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { stateOfFile, watchConfigFile } from '../../src/cli/serve/config-file-watch.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

let file: string;
let clock: FakeClock;
let changes: number;

beforeEach(() => {
  file = join(makeTemporaryFolder(), 'textgate.yaml');
  writeFileSync(file, 'first');
  clock = createFakeClock();
  changes = 0;
});

/** Lets the watch look at the file once. */
async function look(): Promise<void> {
  clock.advance(1_000);
  await eventually('it has looked', () => clock.scheduled === 1);
}

test('a change between the reading of the file and the first look is seen, once', async () => {
  const since = stateOfFile(file);
  writeFileSync(file, 'changed');
  watchConfigFile(file, since, clock, () => void changes++);
  await look();
  expect(changes).toBe(1);
  await look();
  expect(changes).toBe(1);
});

test('each later change is seen, also that the file is gone and that it is there again', async () => {
  watchConfigFile(file, stateOfFile(file), clock, () => void changes++);
  await look();
  expect(changes).toBe(0);
  writeFileSync(file, 'a longer text');
  await look();
  expect(changes).toBe(1);
  rmSync(file);
  await look();
  await look();
  expect(changes).toBe(2);
  writeFileSync(file, 'a longer text');
  await look();
  expect(changes).toBe(3);
});

test('a device or a pipe, which can not be read again, never counts as changed', async () => {
  watchConfigFile('/dev/null', stateOfFile('/dev/null'), clock, () => void changes++);
  writeFileSync('/dev/null', 'x');
  await look();
  expect(changes).toBe(0);
});

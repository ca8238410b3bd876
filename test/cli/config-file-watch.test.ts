import { rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { watchConfigFile } from '../../src/cli/serve/reload-on-change.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

let file: string;
let clock: FakeClock;
let changes: (string | null)[];

beforeEach(() => {
  file = join(makeTemporaryFolder(), 'textgate.yaml');
  writeFileSync(file, 'first');
  clock = createFakeClock();
  changes = [];
});

/** Lets the watch look at the file once. */
async function look(): Promise<void> {
  clock.advance(1_000);
  await eventually('it has looked', () => clock.scheduled === 1);
}

const watch = (since: string | null, path = file) =>
  watchConfigFile(path, since, clock, (text) => void changes.push(text));

test('a change between the reading of the file and the first look is seen, once', async () => {
  writeFileSync(file, 'changed');
  watch('first');
  for (let times = 0; times < 4; times++) await look();
  expect(changes).toEqual(['changed']);
});

test('each later change is seen, also that the file is gone and that it is there again', async () => {
  watch('first');
  const lookTwice = async (): Promise<void> => {
    await look();
    await look();
  };
  await lookTwice();
  expect(changes).toEqual([]);
  writeFileSync(file, 'a longer text');
  await lookTwice();
  rmSync(file);
  await lookTwice();
  await lookTwice();
  writeFileSync(file, 'a longer text');
  await lookTwice();
  expect(changes).toEqual(['a longer text', null, 'a longer text']);
});

test('a text of the same size and time is another text', async () => {
  const { atime, mtime } = statSync(file);
  watch('first');
  await look();
  writeFileSync(file, 'third');
  utimesSync(file, atime, mtime);
  await look();
  await look();
  expect(changes).toEqual(['third']);
});

test('a half written text that is completed before the next look is never taken', async () => {
  watch('first');
  writeFileSync(file, 'ha');
  await look();
  writeFileSync(file, 'half');
  await look();
  expect(changes).toEqual([]);
  await look();
  expect(changes).toEqual(['half']);
});

test('a text that was loaded by a signal is not taken again, and the one before it is', async () => {
  const watched = watch('first');
  writeFileSync(file, 'by a signal');
  watched.loaded('by a signal');
  await look();
  await look();
  expect(changes).toEqual([]);
  writeFileSync(file, 'first');
  await look();
  await look();
  expect(changes).toEqual(['first']);
});

test('a device or a pipe, which can not be read again, never counts as changed', async () => {
  watch('first', '/dev/null');
  await look();
  await look();
  expect(changes).toEqual([]);
});

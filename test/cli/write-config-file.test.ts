import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { refuseOutput, writeConfigFile } from '../../src/cli/write-config-file.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

test('a config file that another process has written meanwhile is replaced by force alone', () => {
  const folder = makeTemporaryFolder();
  const file = join(folder, 'textgate.yaml');
  writeConfigFile(file, 'first', false);
  expect(() => writeConfigFile(file, 'second', false)).toThrow('is there already');
  expect(readFileSync(file, 'utf8')).toBe('first');
  writeConfigFile(file, 'third', true);
  expect([readFileSync(file, 'utf8'), readdirSync(folder)]).toEqual(['third', ['textgate.yaml']]);
});

test('a link that leads nowhere is in the way as a file is, and a folder is so with force, too', () => {
  const folder = makeTemporaryFolder();
  const [link, inner] = [join(folder, 'link.yaml'), join(folder, 'inner.yaml')];
  symlinkSync('/nowhere/at/all', link);
  mkdirSync(inner);
  expect(() => refuseOutput(link, false)).toThrow('link.yaml is there already');
  for (const force of [false, true])
    expect(() => refuseOutput(inner, force)).toThrow('inner.yaml is a folder: name a file with --output');
});

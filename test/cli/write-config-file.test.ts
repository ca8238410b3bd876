import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeConfigFile } from '../../src/cli/write-config-file.ts';
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

import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { installOnce } from './install-package.ts';

test('an installation is in place only when it is complete, and is made once', async () => {
  const parent = makeTemporaryFolder();
  const folder = join(parent, 'cache', 'package-1');
  const failing = installOnce(folder, {}, async (fresh) => {
    writeFileSync(join(fresh, 'half'), '');
    throw new Error('cut off');
  });
  await expect(failing).rejects.toThrow('cut off');
  expect(readdirSync(join(parent, 'cache'))).toEqual([]);

  let installations = 0;
  const install = async (fresh: string): Promise<void> => {
    installations++;
    expect(existsSync(folder)).toBe(false);
    expect(readFileSync(join(fresh, 'package.json'), 'utf8')).toBe('{"name":"a"}');
  };
  await installOnce(folder, { name: 'a' }, install);
  await installOnce(folder, { name: 'a' }, install);
  expect(installations).toBe(1);
  expect(readdirSync(folder)).toEqual(['package.json']);
});

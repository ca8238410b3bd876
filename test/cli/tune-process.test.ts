import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { ownFolder } from '../../src/cli/tune-process.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const run = promisify(execFile);
const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts');

/** Runs a command with its own folder for temporary files; returns that folder. */
async function runIn(environment: Readonly<Record<string, string>>): Promise<string> {
  const folder = makeTemporaryFolder();
  const env = { PATH: process.env['PATH'], TMPDIR: folder, ...environment };
  const { stdout } = await run(process.execPath, [main, '--version'], { env });
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  return folder;
}

const cacheFolder = `textgate-${process.getuid?.()}`;

describe('compiled code', () => {
  test('is kept for the next start, in a folder that only its user can read', async () => {
    const folder = await runIn({});
    expect(statSync(join(folder, cacheFolder)).mode & 0o777).toBe(0o700);
    const [compiled = ''] = readdirSync(join(folder, cacheFolder));
    expect(readdirSync(join(folder, cacheFolder, compiled))).not.toEqual([]);
  });

  test('is not kept with NODE_DISABLE_COMPILE_CACHE', async () => {
    expect(readdirSync(await runIn({ NODE_DISABLE_COMPILE_CACHE: '1' }))).toEqual([]);
  });

  test('is kept where NODE_COMPILE_CACHE says', async () => {
    const chosen = join(makeTemporaryFolder(), 'chosen');
    const folder = await runIn({ NODE_COMPILE_CACHE: chosen });
    expect([existsSync(chosen), readdirSync(folder)]).toEqual([true, []]);
  });

  test('is not kept where no folder can be made', async () => {
    const folder = await runIn({ TMPDIR: '/dev/null' });
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('the folder of compiled code', () => {
  test('is made for its user alone', () => {
    const folder = join(makeTemporaryFolder(), 'made');
    expect(ownFolder(folder)).toBe(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(ownFolder(folder)).toBe(folder);
  });

  test.each([0o770, 0o707, 0o755])('is not used when others have rights to it (mode %o)', (mode) => {
    const folder = join(makeTemporaryFolder(), 'shared');
    mkdirSync(folder);
    chmodSync(folder, mode);
    expect(ownFolder(folder)).toBeNull();
  });

  test('is not used when it is a link: its target may be changed by others', () => {
    const [target, folder] = [makeTemporaryFolder(), join(makeTemporaryFolder(), 'link')];
    chmodSync(target, 0o700);
    symlinkSync(target, folder);
    expect(ownFolder(folder)).toBeNull();
  });

  test('is not used when it belongs to another user', () => {
    // Only root can read another user's folder here; the mode refuses it for all others.
    expect(ownFolder('/proc/1')).toBeNull();
  });
});

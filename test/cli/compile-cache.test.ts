import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { ownFolder, removeOldCode } from '../../src/cli/tune-process.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const run = promisify(execFile);
const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts');

/** Runs a command with its own home and its own folder for temporary files; returns both. */
async function runIn(environment: Readonly<Record<string, string>>) {
  const [home, temporary] = [makeTemporaryFolder(), makeTemporaryFolder()];
  const env = { PATH: process.env['PATH'], HOME: home, TMPDIR: temporary, ...environment };
  const { stdout } = await run(process.execPath, [main, '--version'], { env });
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  return { home, temporary };
}

/** Whether the folder has compiled code, and no other user can read it. */
function hasCode(folder: string): boolean {
  const [compiled = ''] = readdirSync(folder);
  return (statSync(folder).mode & 0o777) === 0o700 && readdirSync(join(folder, compiled)).length > 0;
}

describe('compiled code', () => {
  test('is kept for the next start among the user’s caches, not among temporary files', async () => {
    const { home, temporary } = await runIn({});
    expect(hasCode(join(home, '.cache', 'textgate'))).toBe(true);
    expect(readdirSync(temporary)).toEqual([]);
  });

  test('is kept where XDG_CACHE_HOME says', async () => {
    const chosen = makeTemporaryFolder();
    const { home } = await runIn({ XDG_CACHE_HOME: chosen });
    expect(hasCode(join(chosen, 'textgate'))).toBe(true);
    expect(readdirSync(home)).toEqual([]);
  });

  test('is kept in the home when XDG_CACHE_HOME is a relative path, as its specification says', async () => {
    const { home } = await runIn({ XDG_CACHE_HOME: 'relative' });
    expect(hasCode(join(home, '.cache', 'textgate'))).toBe(true);
  });

  test('is not kept with NODE_DISABLE_COMPILE_CACHE', async () => {
    const { home } = await runIn({ NODE_DISABLE_COMPILE_CACHE: '1' });
    expect(readdirSync(home)).toEqual([]);
  });

  test('is kept where NODE_COMPILE_CACHE says', async () => {
    const chosen = join(makeTemporaryFolder(), 'chosen');
    const { home } = await runIn({ NODE_COMPILE_CACHE: chosen });
    expect([existsSync(chosen), readdirSync(home)]).toEqual([true, []]);
  });

  test('is not kept where no folder can be made', async () => {
    const { home, temporary } = await runIn({ XDG_CACHE_HOME: '/dev/null' });
    expect([...readdirSync(home), ...readdirSync(temporary)]).toEqual([]);
  });

  test('is not kept below a folder that others can write to', async () => {
    const chosen = makeTemporaryFolder();
    chmodSync(chosen, 0o777);
    await runIn({ XDG_CACHE_HOME: chosen });
    expect(readdirSync(chosen)).toEqual([]);
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

  test.each([0o777, 0o775, 0o757])('is not made below a folder that others can write to (%o)', (mode) => {
    const above = join(makeTemporaryFolder(), 'above');
    const between = join(above, 'between');
    mkdirSync(between, { recursive: true });
    chmodSync(above, mode);
    expect(ownFolder(join(between, 'made'))).toBeNull();
    expect(readdirSync(between)).toEqual([]);
  });

  test('is made below a folder whose entries only their owners can remove', () => {
    const above = makeTemporaryFolder();
    chmodSync(above, 0o1777);
    expect(ownFolder(join(above, 'made'))).toBe(join(above, 'made'));
  });

  test('is used by its real path, so that a link above it can be changed later', () => {
    const [target, link] = [makeTemporaryFolder(), join(makeTemporaryFolder(), 'link')];
    symlinkSync(target, link);
    expect(ownFolder(join(link, 'made'))).toBe(join(target, 'made'));
  });

  const me = process.getuid?.() ?? 0;
  const other = 65_534;
  /** Makes a folder that belongs to another user than the one who is returned. */
  const makeForeign = (folder: string): number => {
    mkdirSync(folder, { mode: 0o700 });
    if (me !== 0) return other;
    chownSync(folder, other, other);
    return me;
  };

  test('is not used when it belongs to another user', () => {
    const folder = join(makeTemporaryFolder(), 'foreign');
    expect(ownFolder(folder, makeForeign(folder))).toBeNull();
  });

  test('is not made in the folder of another user', () => {
    const folder = join(makeTemporaryFolder(), 'foreign');
    expect(ownFolder(join(folder, 'made'), makeForeign(folder))).toBeNull();
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('old compiled code', () => {
  const dayMs = 86_400_000;
  const nowMs = 1_800_000_000_000;

  /** A folder with the code of several versions, by their ages in days. */
  function makeVersions(ages: Readonly<Record<string, number>>): string {
    const folder = makeTemporaryFolder();
    for (const [name, days] of Object.entries(ages)) {
      const version = join(folder, name);
      mkdirSync(version);
      writeFileSync(join(version, 'code'), 'compiled');
      const changed = new Date(nowMs - days * dayMs);
      utimesSync(version, changed, changed);
    }
    return folder;
  }

  test('of other versions is removed when it got no addition for 30 days', () => {
    const folder = makeVersions({ inUse: 90, recent: 29, old: 30, older: 400 });
    removeOldCode(folder, join(folder, 'inUse'), nowMs);
    expect(readdirSync(folder).toSorted()).toEqual(['inUse', 'recent']);
  });

  test('is removed in four folders at most, so that no start takes long', () => {
    const folder = makeVersions({ a: 31, b: 32, c: 33, d: 34, e: 35, f: 36 });
    removeOldCode(folder, join(folder, 'inUse'), nowMs);
    expect(readdirSync(folder)).toHaveLength(2);
  });

  test('stays when it can not be removed', () => {
    const missing = join(makeTemporaryFolder(), 'missing');
    expect(() => removeOldCode(missing, join(missing, 'inUse'), nowMs)).not.toThrow();
  });
});

import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { minNodeMajor, whyNodeIsTooOld } from '../../src/shared/node-version.ts';
import { programFile } from '../support/program.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');

/** A Node of this machine that is too old, and its version. */
const oldNode = findOldNode();

function findOldNode(): { readonly path: string; readonly version: string } | null {
  for (const path of ['/usr/bin/node', '/usr/local/bin/node', '/opt/node/bin/node'])
    try {
      const version = execFileSync(path, ['--version'], { encoding: 'utf8' }).trim();
      if (whyNodeIsTooOld(version) !== null) return { path, version };
    } catch {
      // There is none.
    }
  return null;
}

test('a version below that of package.json’s engines is too old', () => {
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  expect(engines.node).toBe(`>=${minNodeMajor}`);
  expect(['v26.0.0', 'v26.10.0', 'v100.0.0'].map(whyNodeIsTooOld)).toEqual([null, null, null]);
  expect(whyNodeIsTooOld('v20.20.2')).toBe('textgate needs Node 26 or newer; this is v20.20.2');
});

describe.skipIf(oldNode === null)('the package on an older Node (needs one at /usr/bin/node)', () => {
  test('says in one sentence which Node it needs, as a command and as a library', async () => {
    const { path = '', version = '' } = oldNode ?? {};
    const folder = makeTemporaryFolder();
    mkdirSync(join(folder, 'dist'));
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    // `npm run check` checks the types.
    const compile = `-p ${join(root, 'config', 'tsconfig.build.json')} --noCheck --declaration false --outDir`;
    await run(join(root, 'node_modules', '.bin', 'tsc'), [...compile.split(' '), join(folder, 'dist')]);
    symlinkSync(dirname(programFile), join(folder, 'dist', 'bundle'));
    const { exports, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      exports: { '.': { default: string } };
      bin: { textgate: string };
    };
    const sentence = `textgate needs Node 26 or newer; this is ${version}`;
    const start = async (...args: readonly string[]): Promise<{ code: number; stderr: string }> =>
      run(path, args, { cwd: folder, env: {} }).then(
        () => ({ code: 0, stderr: '' }),
        (error: { code: number; stderr: string }) => error,
      );

    for (const args of [['--help'], ['serve']])
      expect(await start(bin.textgate, ...args)).toMatchObject({ code: 1, stderr: `${sentence}\n` });
    const library = await start(exports['.'].default);
    expect(library.code).toBe(1);
    expect(library.stderr).toContain(sentence);
    expect(library.stderr).not.toMatch(/^ +at /m);
  });
});

test('npm prints errors only in a checkout, as its tools’ warnings about other Node versions say nothing', () => {
  expect(readFileSync(join(root, '.npmrc'), 'utf8')).toMatch(/^loglevel=error$/m);
});

import { execFile } from 'node:child_process';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');

/** Prints the files that a process loaded, when it ends. */
const listLoaded = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  import { writeSync } from 'node:fs';
  const loaded = [];
  registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
  process.on('exit', () => writeSync(2, 'loaded ' + JSON.stringify(loaded) + '\\n'));
`)}`;

/** The files of the sources, and the packages, that a command loads. */
async function loadedBy(...args: readonly string[]) {
  const main = join(root, 'src', 'main.ts');
  const env = { TEXTGATE_ADMIN_URL: 'http://127.0.0.1:1', TEXTGATE_ADMIN_TOKEN: 'any' };
  const { stdout, stderr } = await run(process.execPath, ['--import', listLoaded, main, ...args], {
    env,
  }).catch((failed: { stdout: string; stderr: string }) => failed);
  const urls = JSON.parse(/^loaded (.*)$/m.exec(stderr)?.[1] ?? '') as string[];
  const paths = urls
    .filter((url) => url.startsWith('file:'))
    .map((url) => relative(root, fileURLToPath(url)));
  const packages = paths.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
  return {
    stdout,
    builtins: urls.filter((url) => url.startsWith('node:')),
    packages: [...new Set(packages)],
    sources: paths.filter((path) => path.startsWith('src/') && !path.startsWith('src/cli/commands/')),
  };
}

test.each(['--version', '--help', 'keys --help', 'serve --help'])(
  'textgate %s loads nothing but what the help prints',
  async (args) => {
    const { stdout, packages, sources, builtins } = await loadedBy(...args.split(' '));
    expect(stdout).toMatch(/^(\d+\.\d+\.\d+|Usage: textgate .*)\n/);
    expect(packages).toEqual(['commander']);
    expect(sources.toSorted()).toEqual([
      'src/cli/describe-error.ts',
      'src/cli/early-signals.ts',
      'src/cli/output.ts',
      'src/cli/program.ts',
      'src/cli/tune-process.ts',
      'src/config/admin-token.ts',
      'src/config/environment.ts',
      'src/main.ts',
      'src/shared/control-characters.ts',
      'src/shared/node-version.ts',
    ]);
    for (const slow of ['node:sqlite', 'node:http', 'node:https', 'node:net', 'node:tls', 'node:zlib'])
      expect(builtins).not.toContain(slow);
  },
);

test('a command that calls the gateway loads neither the gateway nor the config’s schema', async () => {
  const { packages, sources } = await loadedBy('keys', 'list');
  expect(sources).toContain('src/cli/admin-client.ts');
  expect(packages).toEqual(['commander']);
  expect(sources.filter((path) => /gateway\.ts|schema/.test(path))).toEqual(['src/cli/find-gateway.ts']);
});

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { alwaysLoaded, listLoaded, loadedFiles, packagesOf } from '../support/loaded-files.ts';
import { errorMessage } from '../support/postgres-error.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startTextgate } from '../support/textgate-process.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');

const main = join(root, 'src', 'main.ts');

/** The files of the sources, and the packages, that a command loads. */
async function loadedBy(...args: readonly string[]) {
  const env = { TEXTGATE_ADMIN_URL: 'http://127.0.0.1:1', TEXTGATE_ADMIN_TOKEN: 'any' };
  const { stdout, stderr } = await run(process.execPath, ['--import', listLoaded, main, ...args], {
    env,
  }).catch((failed: { stdout: string; stderr: string }) => failed);
  return { stdout, ...readLoaded(stderr) };
}

/** What a process has printed with `listLoaded`. */
function readLoaded(stderr: string) {
  const { files, builtins } = loadedFiles(stderr);
  const paths = files.map((file) => relative(root, file));
  return {
    builtins,
    packages: packagesOf(paths),
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
      'src/config/environment.ts',
      'src/main.ts',
      'src/shared/control-characters.ts',
      'src/shared/node-version.ts',
      'src/shared/version.ts',
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

describe('textgate serve', () => {
  /** What a gateway loads up to its end: the dependencies of package.json, and the files of the sources. */
  async function loadedByServe(more: object) {
    const folder = makeTemporaryFolder();
    const model = { routes: [{ upstream: 'own', model: 'demo' }], free: true };
    const config = {
      server: { port: 0 },
      admin: { port: 0 },
      upstreams: { own: { url: 'http://127.0.0.1:1/v1' } },
      models: { demo: model },
      ...more,
    };
    writeFileSync(`${folder}/textgate.yaml`, JSON.stringify(config));
    const environment = { NODE_OPTIONS: `--import=${listLoaded}` };
    const server = startTextgate(['serve', 'textgate.yaml'], folder, environment, { program: main });
    // One whose database refuses it ends by itself.
    const serves = server.printed(/textgate serves/).then(() => server.signal('SIGTERM'));
    await Promise.race([serves, server.finished]);
    serves.catch(() => {});
    const { packages, sources } = readLoaded((await server.finished).stderr);
    return { packages: packages.filter((name) => name in packageJson.dependencies).toSorted(), sources };
  }

  // Without such paths: test/e2e/bundle.test.ts.
  test('loads what passes paths on with a config that has such paths', async () => {
    const path = { path: '/tokenize', upstream: 'own', free: true };
    const { packages, sources } = await loadedByServe({ passthrough: [path] });
    expect(packages).toEqual([...alwaysLoaded, 'http-proxy-middleware'].toSorted());
    expect(sources.filter((file) => file.startsWith('src/second-meter/'))).toEqual([]);
  });

  test('loads the second meter with a share of answers that it samples, and no package for it', async () => {
    const { packages, sources } = await loadedByServe({ metering: { sample: '1%' } });
    expect(packages).toEqual(alwaysLoaded.toSorted());
    expect(sources.filter((file) => file.startsWith('src/second-meter/')).toSorted()).toEqual([
      'src/second-meter/instruments.ts',
      'src/second-meter/second-meter.ts',
      'src/second-meter/usage-drift.ts',
    ]);
  });

  test('loads the client of PostgreSQL with a URL of it', async () => {
    const database = createServer();
    onTestFinished(() => void database.close());
    await once(database.listen(0, '127.0.0.1'), 'listening');
    const { port } = database.address() as AddressInfo;
    database.on('connection', (socket) => {
      socket.on('error', () => {});
      socket.once('data', () => void socket.end(errorMessage('28P01', 'password authentication failed')));
    });
    const storage = { url: `postgres://me@127.0.0.1:${port}/gateway` };
    expect((await loadedByServe({ storage })).packages).toEqual(expect.arrayContaining(['pg']));
  });
});

test('a thread of the database loads no packages: each would take its memory in every thread', () => {
  const { files, packages } = importedBy(join(root, 'src', 'storage', 'sqlite', 'sqlite-worker.ts'));
  expect(files.length).toBeGreaterThan(20);
  expect(packages).toEqual([]);
});

/** The files that a module imports as code, with all that those import, and the packages. */
function importedBy(entry: string) {
  const files = [entry];
  const packages = new Set<string>();
  for (const file of files)
    for (const [, target = ''] of readFileSync(file, 'utf8').matchAll(importLine)) {
      const path = join(dirname(file), target);
      if (!target.startsWith('.') && !target.startsWith('node:')) packages.add(target);
      if (target.startsWith('.') && !files.includes(path)) files.push(path);
    }
  return { files, packages: [...packages] };
}

/** An import or an export of code from another module. */
const importLine = /^(?:import|export)\s+(?!type\b)[^;]*?from '([^']+)'/gm;

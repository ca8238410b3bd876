import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';
import { startTextgate } from '../support/textgate-process.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');

/** Prints the files that the main thread of a process loaded, when it ends. */
const listLoaded = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  import { writeSync } from 'node:fs';
  import { isMainThread } from 'node:worker_threads';
  const loaded = [];
  registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
  if (isMainThread) process.on('exit', () => writeSync(2, 'loaded ' + JSON.stringify(loaded) + '\\n'));
`)}`;

/** The files of the sources, and the packages, that a command loads. */
async function loadedBy(...args: readonly string[]) {
  const main = join(root, 'src', 'main.ts');
  const env = { TEXTGATE_ADMIN_URL: 'http://127.0.0.1:1', TEXTGATE_ADMIN_TOKEN: 'any' };
  const { stdout, stderr } = await run(process.execPath, ['--import', listLoaded, main, ...args], {
    env,
  }).catch((failed: { stdout: string; stderr: string }) => failed);
  return { stdout, ...readLoaded(stderr) };
}

/** What a process has printed with `listLoaded`. */
function readLoaded(stderr: string) {
  const urls = JSON.parse(/^loaded (.*)$/m.exec(stderr)?.[1] ?? '') as string[];
  const paths = urls
    .filter((url) => url.startsWith('file:'))
    .map((url) => relative(root, fileURLToPath(url)));
  const packages = paths.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
  return {
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
      'src/cli/compile-cache.ts',
      'src/cli/describe-error.ts',
      'src/cli/early-signals.ts',
      'src/cli/output.ts',
      'src/cli/program.ts',
      'src/cli/tune-process.ts',
      'src/config/admin-token.ts',
      'src/config/environment-variables.ts',
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

describe('textgate serve', () => {
  /** The dependencies that a gateway loads up to its end, of those in package.json. */
  async function loadedByServe(passthrough: readonly object[], storage = {}) {
    const folder = makeTemporaryFolder();
    const model = { routes: [{ upstream: 'own', model: 'demo' }], free: true };
    const config = {
      server: { port: 0 },
      admin: { port: 0 },
      upstreams: { own: { url: 'http://127.0.0.1:1/v1' } },
      models: { demo: model },
      passthrough,
      storage,
    };
    writeFileSync(`${folder}/textgate.yaml`, JSON.stringify(config));
    const environment = { NODE_OPTIONS: `--import=${listLoaded}` };
    const server = startTextgate(['serve', 'textgate.yaml'], folder, environment);
    await server.printed(/textgate serves/);
    server.signal('SIGTERM');
    const { packages } = readLoaded((await server.finished).stderr);
    return packages.filter((name) => name in packageJson.dependencies).toSorted();
  }

  // OpenTelemetry's API is a dependency of prom-client; test/telemetry/loading.test.ts has the packages of tracing.
  const always = [
    '@opentelemetry/api',
    'commander',
    'express',
    'lru-cache',
    'pino',
    'prom-client',
    'string-width',
    'undici',
    'yaml',
    'zod',
  ];

  test('loads neither the tokenizer nor what passes paths on, unless the config has such paths', async () => {
    expect(await loadedByServe([])).toEqual(always);
  });

  test('loads what passes paths on with a config that has such paths', async () => {
    const path = { path: '/tokenize', upstream: 'own', free: true };
    expect(await loadedByServe([path])).toEqual([...always, 'http-proxy-middleware'].toSorted());
  });

  test.skipIf(postgresAbsence !== null)('loads the client of PostgreSQL with a URL of it', async () => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const loaded = await loadedByServe([], { url: database.url });
    expect(loaded).toEqual([...always, 'pg'].toSorted());
  });
});

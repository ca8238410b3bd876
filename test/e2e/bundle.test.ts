import { execFile } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { filesBeside } from '../../config/build-binary.ts';
import { buildBundle } from '../support/bundle.ts';
import type { Bundle } from '../support/bundle.ts';
import { alwaysLoaded, listLoaded, loadedFiles, packagesOf } from '../support/loaded-files.ts';
import { startServing } from '../support/serving-process.ts';
import { serveShipped, testShippedProgram } from '../support/shipped-program.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');

/** The most that the files may take, in bytes: a package that comes in whole by mistake is larger than the rest. */
const maxBytes = 12_000_000;

let bundle: Bundle;
beforeAll(async () => {
  bundle = await buildBundle();
});
afterAll(() => bundle.remove());

/** The modules of the chunks that a process has loaded: paths below `src/`, and dependencies of package.json. */
function loadedModules(stderr: string) {
  const modules = loadedFiles(stderr).files.flatMap((file) => bundle.modulesIn(file));
  return {
    sources: modules.map((module) => relative(root, module)).filter((path) => path.startsWith('src/')),
    packages: packagesOf(modules)
      .filter((name) => name in packageJson.dependencies)
      .toSorted(),
  };
}

/** Runs a command of the bundle with the list of what it loads. */
async function loadedBy(...args: readonly string[]) {
  const { stdout, stderr } = await run(process.execPath, ['--import', listLoaded, bundle.program, ...args]);
  return { stdout, ...loadedModules(stderr) };
}

describe('the bundle', () => {
  test('does not have Node load its own fetch beside ours, as imports of its modules would', async () => {
    const listModules = `data:text/javascript,${encodeURIComponent(
      "process.on('exit', () => process._rawDebug(process.moduleLoadList.join(' ')));",
    )}`;
    const args = ['--import', listModules, bundle.program, 'config', 'check'];
    const { stderr } = await run(process.execPath, [...args, 'config/textgate.example.yaml'], { cwd: root });
    expect(stderr).toContain('NativeModule http');
    expect(stderr).not.toContain('undici');
  });

  test('has few files for a gateway to find, and none of its large ones for its threads and for commands that call it', () => {
    const loaded = (entry: string): readonly string[] => {
      const files = new Set([entry]);
      for (const file of files)
        for (const next of bundle.chunks.find(({ fileName }) => fileName === file)?.imports ?? [])
          files.add(next);
      return [...files].filter((file) => bundle.chunks.some(({ fileName }) => fileName === file));
    };
    expect(loaded('gateway.js').length).toBeLessThan(12);
    const large = bundle.chunks.filter(({ code }) => code.length > 150_000).map(({ fileName }) => fileName);
    expect(large).toEqual(expect.arrayContaining(['config.js', 'gateway.js', 'upstreams.js']));
    const small = bundle.chunks
      .filter(
        ({ fileName, moduleIds }) =>
          ['sqlite-worker.js', 'page-worker.js'].includes(fileName) ||
          moduleIds.some((id) => /src\/cli\/(?:keys|requests|top|say)\//.test(id)),
      )
      .map(({ fileName }) => fileName);
    expect(small.length).toBeGreaterThan(5);
    expect(small.filter((file) => loaded(file).some((next) => large.includes(next)))).toEqual([]);
  });

  test('has the packages that are used, with the manifest and the licence of each, and nothing more', () => {
    const folders = bundle.chunks.flatMap(({ moduleIds }) =>
      moduleIds.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []),
    );
    // The console's are served as they are, so they are in no chunk.
    const served = ['htm', 'preact', 'uplot'].map((name) => join('node_modules', name));
    const wanted = [...new Set([...folders, ...served])].map((folder) => {
      const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
        name: string;
        version: string;
      };
      return `${name}@${version}`;
    });
    expect(wanted.length).toBeGreaterThan(Object.keys(packageJson.dependencies).length);
    for (const name of wanted) {
      const files = readdirSync(join(bundle.folder, 'third-party', name));
      expect(files).toContain('package.json');
      expect(files.filter((file) => /licen[cs]e|copying|readme/i.test(file))).not.toEqual([]);
    }
    const all = readdirSync(bundle.folder, { withFileTypes: true, recursive: true }).filter((file) =>
      file.isFile(),
    );
    const bytes = all.map(({ parentPath, name }) => readFileSync(join(parentPath, name)).length);
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(maxBytes);
    expect(all.filter(({ name }) => name === 'package.json')).toHaveLength(new Set(wanted).size);
  });

  test('imports nothing but its own files and modules of Node', () => {
    const names = new Set(bundle.chunks.map(({ fileName }) => fileName));
    const outside = bundle.chunks
      .flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports])
      .filter((imported) => !names.has(imported) && !imported.startsWith('node:'));
    // Packages name modules of Node without the prefix.
    const { builtinModules } = process.getBuiltinModule('node:module');
    expect(outside.filter((imported) => !builtinModules.includes(imported))).toEqual([]);
  });

  test.each(['--version', 'keys --help', 'serve --help'])(
    'loads nothing of the gateway for %s',
    async (args) => {
      const { stdout, packages, sources } = await loadedBy(...args.split(' '));
      expect(stdout).toMatch(args === '--version' ? `${packageJson.version}\n` : /^Usage: textgate .*\n/);
      expect(packages).toEqual(['commander']);
      expect(sources).toContain('src/cli/program.ts');
      expect(sources.filter((path) => !/^src\/(cli|config|shared|main\.ts)/.test(path))).toEqual([]);
    },
  );

  test.each([
    ['list', ['@pydantic/genai-prices']],
    ['{ input: "1", output: "2" }', []],
  ])('loads the list of prices where a config has prices of it: %s', async (price, expected) => {
    const file = join(makeTemporaryFolder(), 'textgate.yaml');
    writeFileSync(
      file,
      `upstreams: { o: { url: https://api.openai.com/v1 } }\nmodels: { small: { routes: [{ upstream: o, model: gpt-4o-mini }], price: ${price} } }\n`,
    );
    const { stdout, packages } = await loadedBy('config', 'check', file);
    expect(stdout).toMatch(/ is valid\n/);
    expect(packages.filter((name) => name.includes('prices'))).toEqual(expected);
  });

  testShippedProgram(() => bundle.program);

  test('has all that it reads beside itself in the image, too', () => {
    const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');
    const copied = [...dockerfile.matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap(([, names = '']) =>
      names.split(' '),
    );
    expect(copied).toEqual(expect.arrayContaining(filesBeside));
  });

  test('loads neither the tokenizer, what passes paths on, PostgreSQL nor OpenTelemetry unless they are used', async () => {
    const serving = await startServing({
      program: bundle.program,
      environment: { NODE_OPTIONS: `--import=${listLoaded}` },
    });
    expect((await serving.ask()).status).toBe(200);
    serving.server.signal('SIGTERM');
    const { packages } = loadedModules((await serving.server.finished).stderr);
    expect(packages).toEqual(alwaysLoaded);
  });

  test('reports an uncaught error with its stack, in which functions have the names of the sources', async () => {
    const early = bundle.chunks.find(({ moduleIds }) =>
      moduleIds.some((id) => id.endsWith('early-signals.ts')),
    );
    expect(early?.code).toMatch(/^function endOnEarlySignal\(\) \{$/m);
    const fault = join(makeTemporaryFolder(), 'fault.mjs');
    writeFileSync(fault, "process.on('SIGUSR2', () => setImmediate(() => { null.text; }));");
    const { serving } = await serveShipped(bundle.program, { NODE_OPTIONS: `--import=${fault}` });
    serving.server.signal('SIGUSR2');
    const { code, stdout } = await serving.server.finished;
    expect(code).toBe(1);
    const line = stdout.split('\n').find((text) => text.includes('uncaught error: shutting down')) ?? '{}';
    expect(JSON.parse(line)).toMatchObject({ error: 'TypeError' });
    expect((JSON.parse(line) as { stack: readonly string[] }).stack.join('\n')).toContain('fault.mjs');
  });

  test('keeps its compiled code where the environment says', async () => {
    const folder = makeTemporaryFolder();
    const env = { XDG_CACHE_HOME: folder, HOME: folder };
    await run(process.execPath, [bundle.program, '--version'], { env });
    expect(existsSync(join(folder, 'textgate'))).toBe(true);
  });
});

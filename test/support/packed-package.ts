import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { makeTemporaryFolder } from './temporary-folder.ts';
import { freePort } from './free-port.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');

/** The hosts in which the package is tested, beside the Express of its own dependencies. */
const hosts = {
  express4: 'npm:express@4.22.1',
  fastify: '5.12.8',
  '@fastify/middie': '9.3.6',
  hono: '4.13.19',
  '@hono/node-server': '2.1.8',
  next: '16.4.6',
};

/** A folder with the packed package and its hosts installed. */
export interface InstalledPackage {
  readonly folder: string;
  /** The path of the packed package. */
  readonly tarball: string;
  /** The paths in the package. */
  readonly files: readonly string[];
  write(file: string, text: string): void;
  /** Type-checks files under strict rules; resolves with the compiler's complaints. */
  typeCheck(files: readonly string[], options: object): Promise<string>;
  /** Runs a file that opens a server on port 3000, but on a free port; its gateway is `gateway.ts`, or its own export. */
  serve(file: string): Promise<ServedHost>;
  /** Deletes the folder. */
  remove(): void;
}

export interface ServedHost {
  readonly origin: string;
  readonly key: string;
  close(): Promise<void>;
}

/** Creates a key in the gateway of a host, reports it, and ends with its parent. */
const starter = `
process.once('disconnect', () => process.exit());
const host = await import(process.argv[2]);
const { gateway } = 'gateway' in host ? host : await import('./gateway.ts');
const { key } = await gateway.keys.create({ name: 'test', concurrency: 1 });
process.send(key);
`;

/** Packs the package and installs it with its hosts; needs a package registry. */
export async function installPackage(): Promise<InstalledPackage> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-package-'));
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: root });
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [
    { readonly filename: string; readonly files: readonly { readonly path: string }[] },
  ];
  const { devDependencies: own, dependencies } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as Record<'devDependencies' | 'dependencies', Record<string, string>>;
  const types = Object.fromEntries(['@types/node', '@types/express'].map((name) => [name, own[name]]));
  const manifest = {
    private: true,
    type: 'module',
    dependencies: { textgate: `file:${filename}`, express: dependencies['express'], ...types, ...hosts },
  };
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  };
  write('package.json', JSON.stringify(manifest));
  write('start.ts', starter);
  // Without optional packages: Next's compiler and image library are as large as everything else.
  await run('npm', ['install', '--omit=optional', '--prefer-offline', '--no-audit', '--no-fund'], {
    cwd: folder,
  });
  return {
    folder,
    tarball: join(folder, filename),
    files: files.map(({ path }) => path),
    write,
    async typeCheck(checked, options) {
      const compilerOptions = {
        module: 'nodenext',
        target: 'es2024',
        strict: true,
        types: ['node'],
        noEmit: true,
        allowImportingTsExtensions: true,
        ...options,
      };
      write('tsconfig.json', JSON.stringify({ compilerOptions, files: checked }));
      return run(join(root, 'node_modules/.bin/tsc'), [], { cwd: folder }).then(
        ({ stdout: complaints }) => complaints,
        (error: unknown) => (error as { readonly stdout: string }).stdout,
      );
    },
    serve: (file) => serve(folder, file),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function serve(folder: string, file: string): Promise<ServedHost> {
  const port = await freePort();
  const onPort = file.replace(/(\.\w+)$/, '.on-port$1');
  writeFileSync(join(folder, onPort), readFileSync(join(folder, file), 'utf8').replace('3000', String(port)));
  const child = fork(join(folder, 'start.ts'), [`./${onPort}`], {
    cwd: makeTemporaryFolder(),
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let complaints = '';
  child.stderr?.on('data', (chunk: Buffer) => (complaints += chunk.toString('utf8')));
  const ended = once(child, 'exit');
  const [key] = (await Promise.race([
    once(child, 'message'),
    ended.then(() => {
      throw new Error(`${file} ended before it served: ${complaints}`);
    }),
  ])) as [string];
  return {
    origin: `http://127.0.0.1:${port}`,
    key,
    async close() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

import { fileURLToPath } from 'node:url';

/** The URL of a module for `--import`, which prints the files that the main thread of a process loaded, when it ends. */
export const listLoaded = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  import { writeSync } from 'node:fs';
  import { isMainThread } from 'node:worker_threads';
  const loaded = [];
  registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
  if (isMainThread) process.on('exit', () => writeSync(2, 'loaded ' + JSON.stringify(loaded) + '\\n'));
`)}`;

/** The paths of the files, and the modules of Node, that a process has printed so. */
export function loadedFiles(stderr: string): {
  readonly files: readonly string[];
  readonly builtins: readonly string[];
} {
  const urls = JSON.parse(/^loaded (.*)$/m.exec(stderr)?.[1] ?? '') as readonly string[];
  return {
    files: urls.filter((url) => url.startsWith('file:')).map((url) => fileURLToPath(url)),
    builtins: urls.filter((url) => url.startsWith('node:')),
  };
}

/** The packages that files are from. */
export function packagesOf(files: readonly string[]): readonly string[] {
  return [...new Set(files.flatMap((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []))];
}

/**
 * The dependencies in package.json that every gateway loads. OpenTelemetry's API is a dependency of prom-client;
 * test/telemetry/loading.test.ts has the packages of tracing.
 */
export const alwaysLoaded = [
  '@opentelemetry/api',
  'commander',
  'express',
  'fast-string-truncated-width',
  'lru-cache',
  'pino',
  'prom-client',
  'undici',
  'yaml',
  'zod',
];

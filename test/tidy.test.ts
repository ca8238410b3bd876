import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { floors } from './support/floors.ts';

/** The longest a source file may be, in lines: as much as tells one story. */
const maxFileLines = 300;

/** The longest a line of a comment may be, in characters: the formatter does not wrap comments. */
const maxCommentColumns = 130;

/** The arrows between folders of one floor that are meant. */
const drawnArrows = new Set([
  'domain > protocol',
  'background > operations',
  'main.ts > cli',
  'cli > gateway.ts',
  'cli > composition',
  'gateway.ts > composition',
  'index.ts > gateway.ts',
  'index.ts > composition',
]);

/** The packages and Node modules that each folder may use; nothing else may. */
const packages: Readonly<Record<string, readonly string[]>> = {
  'gateway.ts': ['node:crypto', 'node:util'],
  composition: ['node:crypto', 'node:os', 'node:util'],
  // As modules for browsers: `composition/console-packages.ts` says which files are served.
  console: ['htm/preact', 'preact', 'preact/hooks', 'uplot'],
  // zod: schemas of values that the config and the admin API share.
  shared: [
    'node:buffer',
    'node:crypto',
    'node:fs',
    'node:net',
    'node:path',
    'node:sea',
    'node:worker_threads',
    'node:zlib',
    'zod',
  ],
  // zod: the rows of a file that is imported.
  cli: [
    'commander',
    'node:child_process',
    'node:cluster',
    'node:events',
    'node:fs',
    'node:http',
    'node:https',
    'node:module',
    'node:os',
    'node:path',
    'node:readline',
    'node:readline/promises',
    'node:sea',
    'node:stream/consumers',
    'node:util',
    'node:v8',
    'fast-string-truncated-width',
    'yaml',
    'zod',
  ],
  http: [
    'express',
    'http-proxy-middleware',
    'node:stream',
    'node:stream/promises',
    'zod',
    'lru-cache',
    'node:events',
    'node:fs',
    'node:fs/promises',
    'node:module',
    'node:path',
    'node:url',
    'node:http',
    'node:https',
    'node:net',
    'node:tls',
    'node:crypto',
    'node:querystring',
  ],
  transport: [
    'undici',
    'undici/lib/core/connect.js',
    'undici/lib/dispatcher/client.js',
    'undici/lib/dispatcher/pool.js',
    'node:http',
    'node:https',
    'node:net',
    'node:tls',
    'node:dns',
    'node:stream',
    'node:zlib',
  ],
  storage: [
    'lru-cache',
    'node:crypto',
    'node:sqlite',
    'node:worker_threads',
    'node:fs',
    'node:fs/promises',
    'node:net',
    'node:path',
    'node:url',
    'node:util',
    'node:zlib',
    'pg',
  ],
  telemetry: [
    'prom-client',
    'pino',
    'fast-string-truncated-width',
    'node:util',
    'node:perf_hooks',
    'node:fs',
    'node:net',
    'node:stream',
    'node:tty',
    '@opentelemetry/api',
    '@opentelemetry/core',
    '@opentelemetry/exporter-trace-otlp-http',
    '@opentelemetry/resources',
    '@opentelemetry/sdk-trace',
  ],
  // marked: renders the documentation's pages.
  manual: ['marked', 'node:events', 'node:fs/promises', 'node:path', 'node:url', 'node:worker_threads'],
  tokens: ['gpt-tokenizer/encoding/o200k_base', 'node:worker_threads'],
  // The public prices of providers, and a module that is loaded where they are asked for.
  prices: ['@pydantic/genai-prices', 'node:module'],
  config: [
    'zod',
    'yaml',
    'node:child_process',
    'node:fs',
    'node:os',
    'node:path',
    'node:crypto',
    'node:tls',
    'node:util',
  ],
};

interface Source {
  readonly path: string;
  readonly folder: string;
  readonly text: string;
  readonly imports: readonly string[];
}

const root = join(import.meta.dirname, '..');
const sources = readSources('src');

test('a circle of imports is found, and each once', () => {
  const file = (path: string, ...imports: string[]): Source => ({ path, folder: 'a', text: '', imports });
  const all = [
    file('src/a/b.ts', './c.ts', '../d.ts', 'zod'),
    file('src/a/c.ts', './e.ts'),
    file('src/d.ts'),
  ];
  expect(findCircles(all)).toEqual([]);
  expect(findCircles([...all, file('src/a/e.ts', './b.ts')])).toEqual([
    'src/a/b.ts > src/a/c.ts > src/a/e.ts > src/a/b.ts',
  ]);
});

describe('the house', () => {
  test('has been read: there are sources in every folder', () => {
    expect(new Set(sources.map(({ folder }) => folder))).toEqual(new Set(Object.keys(floors)));
  });

  test.each(sources.map((source) => [source.path, source] as const))(
    '%s imports only from floors below, and only its own packages',
    (_path, source) => {
      const wrong = source.imports.filter((imported) => !isAllowed(source, imported));
      expect(wrong).toEqual([]);
    },
  );

  test('has no circles of imports, of types neither: what two files need of each other is in a third one', () => {
    expect(findCircles(sources)).toEqual([]);
  });

  test('keeps files short', () => {
    const lengths = sources.map(({ path, text }) => ({ path, lines: text.split('\n').length }));
    expect(lengths.filter(({ lines }) => lines > maxFileLines)).toEqual([]);
  });

  test('names its files in kebab-case and exports by name', () => {
    expect(sources.filter(({ path }) => !/^src(\/[a-z0-9-]+)+(\.d)?\.ts$/.test(path))).toEqual([]);
    expect(sources.filter(({ text }) => /^export default/m.test(text))).toEqual([]);
  });

  test('has no files that are neither sources nor tests, such as backups of editors', () => {
    const isSource = /^(src|test)(\/[a-z0-9-]+)+(\.model|\.property)?(\.long)?(\.test|\.d)?\.ts$/;
    const strays = ['src', 'test'].flatMap(listFiles).filter((path) => !isSource.test(path));
    expect(strays.toSorted()).toEqual([
      'src/README.md',
      'src/bundle.js',
      'src/console/index.html',
      'src/console/style.css',
      'src/console/tsconfig.json',
      'src/kept-bundles.js',
      'src/start.js',
      'test/outside/package-lock.json',
      'test/outside/package.json',
    ]);
  });

  test('wraps its comments', () => {
    const long = ['src', 'test']
      .flatMap(readSources)
      .flatMap(({ path, text }) =>
        text.split('\n').flatMap((line, index) => (isLongComment(line) ? [`${path}:${index + 1}`] : [])),
      );
    expect(long).toEqual([]);
  });

  test('tells unions apart by a kind, not by the presence of a field', () => {
    const found = sources.filter(({ text }) => /'\w+' in \w/.test(text));
    expect(found.map(({ path }) => path)).toEqual([]);
  });

  test('names times with their unit', () => {
    const found = sources.flatMap(({ path, text }) =>
      [...text.matchAll(/readonly (created|started|finished|ended|arrived|revoked)At\??: number/g)].map(
        ([field]) => `${path}: ${field}`,
      ),
    );
    expect(found).toEqual([]);
  });

  test('keeps the protocol pure: no waiting, no clock, no chance', () => {
    const impure = sources
      .filter(({ folder }) => folder === 'protocol')
      .filter(({ text }) => /\basync\b|\bPromise\b|\bDate\b|Math\.random|performance\.|process\./.test(text));
    expect(impure.map(({ path }) => path)).toEqual([]);
  });
});

function isAllowed({ path, folder }: Source, imported: string): boolean {
  if (!imported.startsWith('.')) return (packages[folder] ?? []).includes(imported);
  const target = folderOf(join(dirname(path), imported));
  const [from, to] = [floors[folder], floors[target]];
  if (from === undefined || to === undefined) return false;
  return target === folder || to < from || drawnArrows.has(`${folder} > ${target}`);
}

/** The file of a source that an import leads to, as a path in the checkout; `null` for a package. */
function targetOf({ path }: Source, imported: string): string | null {
  return imported.startsWith('.') ? join(dirname(path), imported) : null;
}

/** The shortest circle of imports through each file that is in one, each circle once. */
function findCircles(all: readonly Source[]): readonly string[] {
  const importsOf = new Map(
    all.map((source) => [source.path, source.imports.flatMap((name) => targetOf(source, name) ?? [])]),
  );
  const circles = new Map<string, string>();
  for (const start of importsOf.keys()) {
    const ways = new Map([[start, [start]]]);
    // The map grows while it is read: those that were found first are followed first.
    for (const [path, way] of ways) {
      const imported = importsOf.get(path) ?? [];
      if (imported.includes(start)) {
        const name = way.toSorted().join();
        if (!circles.has(name)) circles.set(name, [...way, start].join(' > '));
        break;
      }
      for (const next of imported) if (!ways.has(next)) ways.set(next, [...way, next]);
    }
  }
  return [...circles.values()];
}

function isLongComment(line: string): boolean {
  return line.length > maxCommentColumns && /^\s*(\/\/|\/?\*)/.test(line);
}

/** The paths of all files below a folder, from the checkout's root. */
function listFiles(folder: string): readonly string[] {
  const paths = globSync(`${folder}/**/*`, { cwd: root, exclude: ['**/node_modules'], withFileTypes: true });
  return paths
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => relative(root, join(parentPath, name)));
}

function readSources(folder: string): readonly Source[] {
  return listFiles(folder)
    .filter((path) => path.endsWith('.ts'))
    .map((path) => {
      const text = readFileSync(join(root, path), 'utf8');
      const imports = [
        ...text.matchAll(/(?:^|\n)(?:import|export)\b[^;]*?from '([^']+)'/g),
        ...text.matchAll(/\bimport\('([^']+)'\)/g),
      ];
      return { path, folder: folderOf(path), text, imports: imports.map(([, name = '']) => name) };
    });
}

/** The first folder below src, or the file itself where it lies in src. */
function folderOf(path: string): string {
  return path.split('/')[1] ?? '';
}

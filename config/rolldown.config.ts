import { readFileSync, readdirSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { ChunkingContext, Plugin, RolldownOptions } from 'rolldown';
import { consolePackages } from '../src/composition/console-packages.ts';
import { listFiles } from '../src/http/console/list-files.ts';
import { vendorPath } from '../src/http/console/rewrite-imports.ts';

const root = join(import.meta.dirname, '..');

/** The files that a licence may require beside the code; some packages have its text in their README only. */
const licenceFile = /^(licen[cs]e|copying|notice)/i;
const readme = /^readme/i;

/** The names of a package's files that have its licence. */
function licencesIn(folder: string): readonly string[] {
  const files = readdirSync(folder);
  const found = files.filter((file) => licenceFile.test(file));
  return found.length > 0 ? found : files.filter((file) => readme.test(file));
}

/** The folder of the package that a module is from, or `null` for our own modules. */
function packageFolder(module: string): string | null {
  return /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(module)?.[0] ?? null;
}

/**
 * Puts `third-party/NAME@VERSION/` beside the chunks for each package whose code is in them: its manifest, by which
 * scanners of images find the package, and its licence.
 */
const thirdParty: Plugin = {
  name: 'third-party',
  generateBundle(_options, bundle) {
    const bundled = Object.values(bundle).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
    const copied = [...consolePackages.values()].map((file) => fileURLToPath(import.meta.resolve(file)));
    const folders = new Set([...bundled, ...copied].map(packageFolder).filter((folder) => folder !== null));
    for (const folder of folders) {
      const manifest = readFileSync(join(folder, 'package.json'), 'utf8');
      const { name, version } = JSON.parse(manifest) as { name: string; version: string };
      const emit = (file: string, source: string): void => {
        this.emitFile({ type: 'asset', fileName: `third-party/${name}@${version}/${file}`, source });
      };
      emit('package.json', manifest);
      for (const file of licencesIn(folder)) emit(file, readFileSync(join(folder, file), 'utf8'));
    }
  },
};

/**
 * Puts the console's files beside the chunks, in `console/`, with its modules as JavaScript, and the packages that they import
 * in `console/vendor/`, since an image has no packages.
 */
const consoleFiles: Plugin = {
  name: 'console',
  async generateBundle() {
    const emit = (path: string, source: string): void => {
      this.emitFile({ type: 'asset', fileName: `console/${path}`, source });
    };
    for (const [path, url] of await listFiles([pathToFileURL(`${join(root, 'src', 'console')}/`)])) {
      if (!/\.(html|css|ts)$/.test(path)) continue;
      const text = readFileSync(url, 'utf8');
      emit(path.replace(/\.ts$/, '.js'), path.endsWith('.ts') ? stripTypeScriptTypes(text) : text);
    }
    for (const [name, file] of consolePackages)
      emit(vendorPath(name), readFileSync(fileURLToPath(import.meta.resolve(file)), 'utf8'));
  },
};

/** The chunk whose characters are a table, which would be longer as escapes. */
const isTable = /^token-worker$/;

/**
 * Writes characters beyond ASCII as escapes, since one of them makes a file take two bytes a character in memory as long as
 * the process lives. Without comments, they stand in texts and regular expressions alone.
 */
const ascii: Plugin = {
  name: 'ascii',
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type !== 'chunk' || isTable.test(file.name)) continue;
      // Behind a backslash, the escape would be the text of itself.
      if (/\\[^\0-\x7f]/.test(file.code))
        this.error(`${file.name} has a backslash before a character beyond ASCII`);
      file.code = file.code.replaceAll(
        /[^\0-\x7f]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
      );
    }
  },
};

/** An import of a module of Node in a chunk: with a default, or of all, or of names. */
const nodeImport =
  /^import (?:([\w$]+)|\* as ([\w$]+)|\{ (.+) \}|([\w$]+), \{ (.+) \}) from "(node:[\w/]+)";$/gm;

/**
 * Takes modules of Node as objects. An import reads all exports of one, also those behind which Node loads more once they are
 * read, such as its own fetch behind `node:http`: a tenth of a start's CPU and 5 MB.
 */
const nodeModules: Plugin = {
  name: 'node-modules',
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type !== 'chunk') continue;
      file.code = file.code.replaceAll(nodeImport, (_line, ...parts: readonly string[]) => {
        const [only, all, names, first, others, name = ''] = parts;
        const taken = `process.getBuiltinModule("${name}")`;
        const variables = [only, all, first].flatMap((variable) =>
          variable === undefined ? [] : [variable],
        );
        const listed = [names, others].flatMap((list) =>
          list === undefined ? [] : [`{ ${list.replaceAll(/([\w$]+) as ([\w$]+)/g, '$1: $2')} }`],
        );
        return [...variables, ...listed].map((variable) => `const ${variable} = ${taken};`).join(' ');
      });
      const left = /^import .*"node:.*$/m.exec(file.code)?.[0];
      if (left !== undefined)
        this.error(`${file.name} imports a module of Node in a form that is not known: ${left}`);
    }
  },
};

/** The media types that answers are asked for by short names, such as `csv`: the whole table has 2,500. */
const namedTypes = ['application/json', 'text/csv'];

/** Modules that packages load at every start for what the gateway never asks of them, and what stands in their place. */
const unused: readonly (readonly [file: RegExp, code: (file: string) => string])[] = [
  // HTTP/2, which upstreams are never called by: it loads `node:http2`.
  [/undici[\\/]lib[\\/]dispatcher[\\/]client-h2\.js$/, () => missing('HTTP/2')],
  // Express' readers of bodies, which load the tables of iconv-lite, and its server of files.
  [/body-parser[\\/]index\.js$/, () => 'module.exports = {};'],
  [/serve-static[\\/]index\.js$/, () => missing('serve-static')],
  [/mime-db[\\/]index\.js$/, (file) => `module.exports = ${namedTypesOf(join(dirname(file), 'db.json'))};`],
];

const withoutUnused: Plugin = {
  name: 'without-unused',
  load: {
    filter: { id: unused.map(([file]) => file) },
    handler: (id) => unused.find(([file]) => file.test(id))?.[1](id),
  },
};

function missing(name: string): string {
  return `module.exports = () => { throw new Error('${name} is not bundled'); };`;
}

function namedTypesOf(table: string): string {
  const all = JSON.parse(readFileSync(table, 'utf8')) as Readonly<Record<string, object>>;
  return JSON.stringify(Object.fromEntries(namedTypes.map((name) => [name, all[name]])));
}

/** Commands that load parts of what a gateway loads. All others call one, and load none of it. */
const largeCommands = [
  'config',
  'doctor',
  'database/migrate',
  'database/restore',
  'import/config/import-config',
  'import/keys/import-keys',
  'init/init',
  'prices/diff-prices',
  'serve/serve',
].map((name) => join(root, 'src', 'cli', `${name}.ts`));

/** What has the schema of configs: commands load it only where no variable names the gateway, or one names a file or a proxy. */
const configFolder = join(root, 'src', 'config', sep);

/** What a gateway loads until it is ready, beside the program's first file. */
const untilReady = inSources('cli/program.ts', 'cli/tune-process.ts', 'cli/serve/serve.ts', 'gateway.ts');

const databaseThread = inSources('storage/sqlite/sqlite-worker.ts');
const otherThreads = inSources('tokens/token-worker.ts', 'manual/page-worker.ts');

/**
 * The chunks of what a gateway loads until it is ready, and what threads of its database load, each with the files from which its
 * modules are reached: a module is in the first one that reaches it. So no chunk imports a later one, and commands and threads
 * load next to nothing that they do not need. Left to the bundler there is a chunk for every set of commands that share
 * modules, sixty files, and to find a file takes longer than to read it.
 */
const chunks: readonly (readonly [name: string, roots: (context: ChunkingContext) => readonly string[]])[] = [
  ['program', () => inSources('cli/program.ts', 'cli/tune-process.ts')],
  ['commands', callingCommands],
  ['database', () => databaseThread],
  ['pages', () => otherThreads],
  ['config', () => inSources('config/load.ts')],
  ['upstreams', () => inSources('cli/doctor.ts')],
  ['gateway', () => inSources('cli/serve/serve.ts', 'gateway.ts')],
];

function inSources(...files: readonly string[]): readonly string[] {
  return files.map((file) => join(root, 'src', file));
}

/** The files of the commands that call a gateway, and what those load when they need it. */
function callingCommands(context: ChunkingContext): readonly string[] {
  const folder = join(root, 'src', 'cli', 'commands');
  const commands = readdirSync(folder).flatMap((file) => dynamicImports(join(folder, file), context));
  const found = commands.filter((id) => !largeCommands.includes(id));
  for (const id of found)
    for (const module of reachedFrom(id, context))
      found.push(
        ...dynamicImports(module, context).filter(
          (next) => !next.startsWith(configFolder) && !found.includes(next),
        ),
      );
  return found;
}

function dynamicImports(id: string, context: ChunkingContext): readonly string[] {
  return context.getModuleInfo(id)?.dynamicallyImportedIds ?? [];
}

const reached = new Map<string, ReadonlySet<string>>();

/** All modules that are loaded with one. */
function reachedFrom(id: string, context: ChunkingContext): ReadonlySet<string> {
  const known = reached.get(id);
  if (known !== undefined) return known;
  const found = new Set([id]);
  for (const module of found)
    for (const next of context.getModuleInfo(module)?.importedIds ?? []) found.add(next);
  reached.set(id, found);
  return found;
}

/** The chunk of a module; `null` where the bundler decides. */
function chunkOf(id: string, context: ChunkingContext): string | null {
  const isReached = (roots: readonly string[]): boolean =>
    roots.some((from) => from !== id && reachedFrom(from, context).has(id));
  const isOfThread = isReached([...databaseThread, ...otherThreads]);
  if (!isReached(databaseThread) && !isReached(untilReady)) return null;
  const name = chunks.find(([, roots]) => isReached(roots(context)))?.[0] ?? null;
  // What threads share with commands is small, and those are not.
  return isOfThread && (name === 'program' || name === 'commands') ? 'base' : name;
}

/**
 * The program with its packages in a few files, for the image. The threads are entries, because they are started by
 * their file's name; what is imported when it is needed stays in chunks of its own. It is not minified, so that stack
 * traces name functions and lines that can be read.
 */
export default {
  cwd: root,
  platform: 'node',
  input: {
    main: 'src/main.ts',
    'sqlite-worker': 'src/storage/sqlite/sqlite-worker.ts',
    'token-worker': 'src/tokens/token-worker.ts',
    'page-worker': 'src/manual/page-worker.ts',
    // Loaded by its name where prices of the list are asked for.
    'price-list': 'src/prices/price-list.ts',
  },
  // Chunks may export more than their entry does: others import it from there.
  preserveEntrySignatures: 'allow-extension',
  // The optional native client of `pg`, which is never asked for.
  external: ['pg-native'],
  output: {
    // Two folders below package.json, where the program looks for its version.
    dir: 'dist/bundle',
    cleanDir: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    keepNames: true,
    comments: false,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ name: chunkOf, debugName: 'loaded together' }],
    },
  },
  plugins: [ascii, nodeModules, withoutUnused, thirdParty, consoleFiles],
} satisfies RolldownOptions;

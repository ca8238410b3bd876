// @ts-check
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

/**
 * The bundle of a checkout, which loads in a third of the time that its sources take. It is built at the first start and used
 * until a source or an installed package changes.
 */

const root = join(import.meta.dirname, '..');

/** Where bundles are kept: like this folder one below the root, beside which the program looks for package.json and docs. */
const bundles = join(root, 'dist');

/** How many bundles are kept: a gateway that runs loads parts of its own when they are needed. */
const maxBundles = 8;

/** How long building may take, and after how long what was never finished is removed, in milliseconds. */
const buildMs = 120_000;
const abandonedMs = 3_600_000;

/** How much of the bundler's words is shown, in characters. */
const maxReason = 500;

/** The signals that end a start. */
const endingSignals = ['SIGTERM', 'SIGINT'];

/** The name of the file in a bundle that says what it was built from. */
const origin = 'built-from';

/** The file to run: the one of a bundle, or of the sources where there can't be one. */
export async function findProgram() {
  const sources = listSources();
  const found = findBundle(sources);
  if (found !== null) return join(found, 'main.js');
  try {
    return join(await buildBundle(sources), 'main.js');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`textgate starts from its sources, which takes longer: ${reason}\n`);
    return join(import.meta.dirname, 'main.ts');
  }
}

/**
 * What a bundle is made of, a line for each file: those of the sources, the config of the bundler and what npm has
 * installed. Times and numbers of files tell changes that keep a size; the time of a file's last change of state can't be set.
 */
function listSources() {
  const installed = join(root, 'node_modules', '.package-lock.json');
  return [
    ...listFiles(import.meta.dirname, true),
    describe(join(root, 'config', 'rolldown.config.ts')),
    describe(installed),
  ].join('\n');
}

/**
 * @param {string} folder
 * @param {boolean} isDeep whether files in its folders count, too
 * @returns {string[]}
 */
function listFiles(folder, isDeep) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return isDeep ? listFiles(path, true) : [];
    return entry.name === origin ? [] : [describe(path)];
  });
}

/**
 * A file's name, and what changes with it.
 *
 * @param {string} path
 */
function describe(path) {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return `${path} ${found?.ino} ${found?.size} ${found?.mtimeNs} ${found?.ctimeNs}`;
}

/**
 * The folder of a bundle that was built from these sources and is whole, or `null`.
 *
 * @param {string} sources
 */
function findBundle(sources) {
  return builtFolders().find((folder) => isBuiltFrom(folder, sources)) ?? null;
}

/** The folders of all bundles, the newest first. */
function builtFolders() {
  try {
    const names = readdirSync(bundles).filter((name) => name.startsWith('start-'));
    return names
      .toSorted()
      .toReversed()
      .map((name) => join(bundles, name));
  } catch {
    return [];
  }
}

/**
 * @param {string} folder
 * @param {string} sources
 */
function isBuiltFrom(folder, sources) {
  try {
    return readFileSync(join(folder, origin), 'utf8') === `${sources}\n\n${listChunks(folder)}`;
  } catch {
    return false;
  }
}

/**
 * The files of the program itself, in a bundle's last place.
 *
 * @param {string} folder
 */
function listChunks(folder) {
  return listFiles(folder, false).join('\n').replaceAll(folder, '');
}

/**
 * Builds a bundle beside the others and resolves with its folder. Throws with the reason where it can't be built. A signal
 * ends the process at once, as there is nothing to finish.
 *
 * @param {string} sources
 */
async function buildBundle(sources) {
  const stopped = new AbortController();
  const stop = () => {
    stopped.abort();
    process.exit(0);
  };
  for (const signal of endingSignals) process.once(signal, stop);
  process.stderr.write(
    'textgate is bundled for this start and later ones: the sources are new or have changed\n',
  );
  const unfinished = join(bundles, `unfinished-${process.pid}-${Date.now()}`);
  try {
    mkdirSync(unfinished, { recursive: true });
    removeOldBundles();
    await runBundler(unfinished, stopped.signal);
    if (listSources() !== sources) throw new Error('the sources changed while they were bundled');
    writeFileSync(join(unfinished, origin), `${sources}\n\n${listChunks(unfinished)}`);
    const folder = join(bundles, `start-${Date.now()}-${process.pid}`);
    renameSync(unfinished, folder);
    return folder;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
    for (const signal of endingSignals) process.off(signal, stop);
  }
}

/**
 * @param {string} folder
 * @param {AbortSignal} signal
 */
async function runBundler(folder, signal) {
  const bundler = join(root, 'node_modules', 'rolldown', 'bin', 'cli.mjs');
  if (!existsSync(bundler)) throw new Error('rolldown is not installed; `npm ci` installs it');
  const { spawn } = await import('node:child_process');
  const args = [bundler, '-c', join(root, 'config', 'rolldown.config.ts'), '--dir', folder];
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], {
    cwd: root,
    env: { ...process.env, NO_COLOR: '1' },
    stdio: ['ignore', 'ignore', 'pipe'],
    signal,
    timeout: buildMs,
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (said += text));
  const end = await new Promise((resolve) => child.once('close', resolve).once('error', resolve));
  if (end !== 0) throw new Error(`the bundler failed: ${said.trim().slice(0, maxReason) || end}`);
}

/** Removes the oldest bundles, and what starts have left that were killed. */
function removeOldBundles() {
  const unfinished = readdirSync(bundles).filter((name) => name.startsWith('unfinished-'));
  const abandoned = unfinished.filter((name) => Date.now() - Number(name.split('-').at(-1)) > abandonedMs);
  for (const folder of [
    ...builtFolders().slice(maxBundles - 1),
    ...abandoned.map((name) => join(bundles, name)),
  ])
    rmSync(folder, { recursive: true, force: true });
}

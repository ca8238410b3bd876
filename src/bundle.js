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
import { constants } from 'node:os';
import { join, sep } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { builtFolders, bundles, removeOldBundles, usedBy } from './kept-bundles.js';

/**
 * The bundle of a checkout, which loads in less time than its sources, a thousand files. It is built at the first start and used
 * until a source or an installed package changes.
 */

const root = join(import.meta.dirname, '..');

/** How long building may take, in milliseconds. */
const buildMs = 120_000;

/** How much of the bundler's words is shown, in characters. */
const maxReason = 500;

/** The signals that end a start, and the exit code of a command that a signal ended, without the signal's number. */
const endingSignals = /** @type {const} */ (['SIGTERM', 'SIGINT']);
const signalCode = 128;

/** A gateway that is ended has ended as it should; any other command has not done its work. */
const isServing = /^(?:serve$|-)/.test(process.argv[2] ?? 'serve');

/** The name of the file in a bundle that says what it was built from. */
const origin = 'built-from';

/** What npm, pnpm and yarn write when they have installed packages. */
const installed = ['.package-lock.json', '.modules.yaml', '.yarn-state.yml', '.yarn-integrity'];

/** The file to run: the one of a bundle, or of the sources where there can't be one. */
export async function findProgram() {
  const sources = listSources();
  try {
    return join(findBundle(sources) ?? (await buildBundle(sources)), 'main.js');
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
  return [
    ...listFiles(import.meta.dirname, true),
    describe(join(root, 'config', 'rolldown.config.ts')),
    ...installed.map((name) => describe(join(root, 'node_modules', name))),
  ].join('\n');
}

/**
 * @param {string} folder
 * @param {boolean} isDeep whether files in its folders count, too
 * @returns {string[]}
 */
function listFiles(folder, isDeep) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    // Not by `join`, which takes a third of the time of all of this.
    const path = `${folder}${sep}${entry.name}`;
    if (entry.isDirectory()) return isDeep ? listFiles(path, true) : [];
    return entry.name === origin || entry.name.startsWith(usedBy) ? [] : [describe(path)];
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
  const bundler = join(root, 'node_modules', 'rolldown', 'bin', 'cli.mjs');
  if (!existsSync(bundler)) throw new Error('rolldown is not installed; `npm ci` installs it');
  const unfinished = join(bundles, `unfinished-${process.pid}-${Date.now()}`);
  mkdirSync(unfinished, { recursive: true });
  const stopped = new AbortController();
  const remove = () => rmSync(unfinished, { recursive: true, force: true });
  /** @param {NodeJS.Signals} signal */
  const stop = (signal) => {
    stopped.abort();
    remove();
    process.exit(isServing ? 0 : signalCode + constants.signals[signal]);
  };
  for (const signal of endingSignals) process.once(signal, stop);
  process.stderr.write(
    'textgate is being bundled for this start and later ones: the sources are new or changed\n',
  );
  try {
    await runBundler(bundler, unfinished, stopped.signal);
    if (listSources() !== sources) throw new Error('the sources changed while they were bundled');
    writeFileSync(join(unfinished, origin), `${sources}\n\n${listChunks(unfinished)}`);
    const folder = join(bundles, `start-${Date.now()}-${process.pid}`);
    renameSync(unfinished, folder);
    removeOldBundles();
    return folder;
  } finally {
    remove();
    for (const signal of endingSignals) process.off(signal, stop);
  }
}

/**
 * @param {string} bundler
 * @param {string} folder
 * @param {AbortSignal} signal
 */
async function runBundler(bundler, folder, signal) {
  const { spawn } = await import('node:child_process');
  const config = join(root, 'config', 'rolldown.config.ts');
  // Node reads the config: rolldown itself would write a copy beside it.
  const args = [bundler, '-c', config, '--configLoader', 'native', '--dir', folder];
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], {
    cwd: root,
    env: { ...process.env, NO_COLOR: '1' },
    stdio: ['ignore', 'ignore', 'pipe'],
    signal,
    timeout: buildMs,
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (said += text));
  const end = await new Promise((resolve) =>
    child.once('close', (code, killed) => resolve(killed ?? code)).once('error', resolve),
  );
  const reason = stripVTControlCharacters(said).trim().slice(0, maxReason);
  if (end !== 0) throw new Error(`the bundler failed: ${reason || end}`);
}

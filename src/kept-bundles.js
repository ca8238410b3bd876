// @ts-check
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where bundles are kept: like this folder one below the root, beside which the program looks for package.json and docs. */
export const bundles = join(import.meta.dirname, '..', 'dist');

/** How many bundles are kept beside those from which a process runs. */
const maxBundles = 8;

/** After how long what was never finished is removed, in milliseconds. */
const abandonedMs = 3_600_000;

/** How the names of the files begin in a bundle that say which processes run from it. */
export const usedBy = 'used-by-';

/** The folders of all bundles, the newest first. */
export function builtFolders() {
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
 * Says that this process runs from a bundle, until it ends: what it loads later, and its workers, must be found there.
 *
 * @param {string} folder
 */
export function keepBundle(folder) {
  const file = join(folder, `${usedBy}${process.pid}`);
  try {
    writeFileSync(file, '');
    process.once('exit', () => rmSync(file, { force: true }));
  } catch {
    // The bundle of another user, which only that one removes.
  }
}

/** Removes the oldest bundles that no process runs from, and what starts have left that were killed. */
export function removeOldBundles() {
  const unfinished = readdirSync(bundles).filter((name) => name.startsWith('unfinished-'));
  const abandoned = unfinished.filter((name) => Date.now() - Number(name.split('-').at(-1)) > abandonedMs);
  const old = builtFolders()
    .slice(maxBundles)
    .filter((folder) => !isUsed(folder));
  for (const folder of [...old, ...abandoned.map((name) => join(bundles, name))])
    try {
      rmSync(folder, { recursive: true, force: true });
    } catch {
      // It belongs to another user, whose starts remove it.
    }
}

/** @param {string} folder */
function isUsed(folder) {
  const users = readdirSync(folder).filter((name) => name.startsWith(usedBy));
  return users.some((name) => isRunning(Number(name.slice(usedBy.length))));
}

/** @param {number} pid */
function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // A process of another user may not be sent signals.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

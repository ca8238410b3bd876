import { setFlagsFromString } from 'node:v8';
import { existsSync, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { enableCompileCache, getCompileCacheDir } from 'node:module';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

/**
 * The size of the pools that small buffers are cut from, in bytes. A pool stays as long as one of its pieces; with the
 * 64 KiB of Node 26, one short body that waits keeps the memory of many. Older versions have 8 KiB themselves.
 */
const bufferPoolBytes = 8_192;

/**
 * How much the old generation grows between two collections, in percent of what lives. V8's own factor rises to 300 % with
 * the memory of the machine: with 24 GB, 30 MB that live become 220 MB.
 */
const heapGrowthPercent = 100;

/** Sets what a process of our own sets for speed and memory. Never called in an app that mounts the gateway. */
export function tuneProcess(): void {
  Buffer.poolSize = bufferPoolBytes;
  setFlagsFromString(`--heap-growing-percent=${heapGrowthPercent}`);
  keepCompiledCode();
}

/** After how long without new code the cache of another version of Node, or of other flags, is removed, in milliseconds. */
const maxAgeMs = 30 * 86_400_000;

/** How many of them are removed at one start: each has some thousand files. */
const maxRemoved = 4;

/** What others must not be able to do with the folder, and with those above it, of their modes. */
const othersMayUse = 0o077;
const othersMayWrite = 0o022;

/** A folder with this bit lets others add to it, but only an owner removes or renames what is in it. */
const sticky = 0o1000;

const rootUser = 0;

/** Keeps compiled code for the next start, unless `NODE_COMPILE_CACHE` or `NODE_DISABLE_COMPILE_CACHE` say otherwise. */
function keepCompiledCode(): void {
  if (process.env['NODE_DISABLE_COMPILE_CACHE'] !== undefined || getCompileCacheDir() !== undefined) return;
  const folder = cacheFolder();
  if (folder === null) return;
  enableCompileCache(folder);
  // The threads have caches of their own, which only this variable enables.
  process.env['NODE_COMPILE_CACHE'] = folder;
  removeOldCode(folder, getCompileCacheDir() ?? folder, Date.now());
}

/** The folder of this user's caches, by the XDG specification, which ignores relative paths; `null` without a home. */
function cacheFolder(): string | null {
  const chosen = process.env['XDG_CACHE_HOME'] ?? '';
  try {
    return ownFolder(join(isAbsolute(chosen) ? chosen : join(homedir(), '.cache'), 'textgate'));
  } catch {
    return null;
  }
}

/**
 * The real path of the folder, made if it is missing; `null` if another user could write to it or put another folder in
 * its place, whose code would then be run, or if it can't be made: the cache only saves time. It is checked once but used
 * as long as the process runs, so all folders above it count, too.
 */
export function ownFolder(folder: string, user = process.getuid?.()): string | null {
  try {
    // First, so that nothing is made in a folder of another user, as with `sudo` and its caller's home.
    if (!isOutOfReach(nearest(dirname(folder)), user)) return null;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const found = lstatSync(folder);
    const isOwn = found.uid === (user ?? found.uid) && (found.mode & othersMayUse) === 0;
    const path = realpathSync(folder);
    return found.isDirectory() && isOwn && isOutOfReach(dirname(path), user) ? path : null;
  } catch {
    return null;
  }
}

/** The real path of this folder, or of the first one above it that exists. */
function nearest(folder: string): string {
  return existsSync(folder) ? realpathSync(folder) : nearest(dirname(folder));
}

/** Whether no other user than root can move or remove what is in this folder, or in one above it. */
function isOutOfReach(folder: string, user: number | undefined): boolean {
  const { uid, mode } = statSync(folder);
  const isTrusted = uid === rootUser || uid === (user ?? uid);
  const isLocked = (mode & othersMayWrite) === 0 || (mode & sticky) !== 0;
  const above = dirname(folder);
  return isTrusted && isLocked && (above === folder || isOutOfReach(above, user));
}

/** Removes code of other versions that got no addition for long: nothing else would, and each version adds some 7 MB. */
export function removeOldCode(folder: string, inUse: string, nowMs: number): void {
  let removed = 0;
  try {
    for (const name of readdirSync(folder)) {
      const other = join(folder, name);
      if (other === inUse || nowMs - statSync(other).mtimeMs < maxAgeMs) continue;
      rmSync(other, { recursive: true });
      if (++removed === maxRemoved) return;
    }
  } catch {
    // Another start removes it at the same time, or it can't be removed.
  }
}

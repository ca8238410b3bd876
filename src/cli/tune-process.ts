import { lstatSync, mkdirSync } from 'node:fs';
import { enableCompileCache, getCompileCacheDir } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';

/**
 * The size of the pools that small buffers are cut from, in bytes. A pool stays as long as one of its pieces; with Node's
 * 64 KiB, one short body that waits keeps the memory of many.
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

/** Keeps compiled code for the next start, unless `NODE_COMPILE_CACHE` or `NODE_DISABLE_COMPILE_CACHE` say otherwise. */
function keepCompiledCode(): void {
  if (process.env['NODE_DISABLE_COMPILE_CACHE'] !== undefined || getCompileCacheDir() !== undefined) return;
  const folder = ownFolder(join(tmpdir(), `textgate-${process.getuid?.() ?? 'compiled'}`));
  if (folder === null) return;
  enableCompileCache(folder);
  // The threads have caches of their own, which only this variable enables.
  process.env['NODE_COMPILE_CACHE'] = folder;
}

/**
 * The folder, made if it is missing; `null` if another user could write to it, whose code would then be run, or if it can't
 * be made: the cache only saves time.
 */
export function ownFolder(folder: string): string | null {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const found = lstatSync(folder);
    const isOwn = found.uid === (process.getuid?.() ?? found.uid) && (found.mode & othersMay) === 0;
    return found.isDirectory() && isOwn ? folder : null;
  } catch {
    return null;
  }
}

/** What others may do with a folder, of its mode. */
const othersMay = 0o077;

import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';

/** Linux has files in memory here: a database of PostgreSQL, a thousand files, is made and dropped in a fifth of the time. */
const memory = '/dev/shm';

/** What has to be free of the memory, and of what files there may take of it, in bytes. */
const freeBytes = 8 * 2 ** 30;

/** How long no test of a run that goes on leaves its folder as it is, in milliseconds. */
const unusedMs = 12 * 3_600_000;

const prefix = 'textgate-tests-';

/**
 * Makes a folder in memory for the temporary files of a run, which is removed when this process ends; `null` where there is not
 * room enough. Those of runs that were killed are removed, too: their files would keep the memory.
 */
export function makeMemoryFolder(): string | null {
  try {
    for (const name of readdirSync(memory)) {
      const folder = join(memory, name);
      const isOurs = name.startsWith(prefix);
      if (isOurs && Date.now() - statSync(folder).mtimeMs > unusedMs) rmSync(folder, { recursive: true });
    }
    const { bavail, bsize } = statfsSync(memory);
    if (Math.min(freemem(), bavail * bsize) < freeBytes) return null;
    const folder = mkdtempSync(join(memory, prefix));
    // The server of PostgreSQL has a user of its own, as root must not start it.
    chmodSync(folder, 0o1777);
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    return folder;
  } catch {
    // Another system, or a folder of another user.
    return null;
  }
}

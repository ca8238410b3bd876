import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';

/** Linux has files in memory here: a database of PostgreSQL, a thousand files, is made and dropped in a fifth of the time. */
const memory = '/dev/shm';

/** What has to be free of the memory, and of what files there may take of it, in bytes: a whole run takes a third. */
const freeBytes = 8 * 2 ** 30;

const prefix = 'tg-run-';

/** The digits of a process id, so that paths have one length: messages with them break into lines at the same places. */
const pidDigits = 7;

/**
 * Makes a folder in memory for the temporary files of a run, which is removed when this process ends; `null` where there is not
 * room enough. Those of runs that were killed are removed, too: their files would keep the memory.
 */
export function makeMemoryFolder(): string | null {
  try {
    for (const name of readdirSync(memory))
      if (name.startsWith(prefix) && !isRunning(Number(name.slice(prefix.length).split('-')[0])))
        rmSync(join(memory, name), { recursive: true, force: true });
    const { bavail, bsize } = statfsSync(memory);
    if (Math.min(freemem(), bavail * bsize) < freeBytes) return null;
    const folder = mkdtempSync(join(memory, `${prefix}${String(process.pid).padStart(pidDigits, '0')}-`));
    // The server of PostgreSQL has a user of its own, as root must not start it.
    chmodSync(folder, 0o1777);
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    return folder;
  } catch {
    // Another system, or a folder of another user.
    return null;
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { filesOf, lockHolders, makePrivateFile } from '../database-files.ts';

/** How long the previous process may take to release the database, in milliseconds. */
const ownerTimeoutMs = 2_000;

/** The first byte that SQLite locks in a file. */
const firstLockedByte = 1_073_741_824;

/** SQLITE_BUSY: another process holds the lock. */
const busyCode = 5;

/**
 * Locks a database file for this process. Two processes on one file would each allow a key its whole limits, and each
 * would end the other's leases. The system releases the lock when a process dies. Returns the lock: closing it releases
 * it. Throws when another process has it (with its process id, where the system shows that), when another process could
 * have it under a second name of the file (a hard link has a lock file of its own), and when the lock file can't be used.
 */
export function lockOwnership(path: string): DatabaseSync {
  const { database, lock: file } = filesOf(path);
  if ((statSync(database, { throwIfNoEntry: false })?.nlink ?? 1) > 1)
    throw new Error(
      'its file has a second name (a hard link), under which another process could use it: remove one',
    );
  const lock = lockFile(file, ownerTimeoutMs);
  if (lock === null) throw new Error(describeBusy(file));
  return lock;
}

/**
 * Locks a file, which is created where there is none, and waits for a process that has the lock, in milliseconds. Returns
 * the lock, which closing it or the end of the process releases; `null` when another process keeps it.
 */
export function lockFile(file: string, timeoutMs: number): DatabaseSync | null {
  makePrivateFile(file);
  const lock = new DatabaseSync(file, { timeout: timeoutMs });
  try {
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    const { errcode = 0 } = error as { readonly errcode?: number };
    if ((errcode & 0xff) === busyCode) return null;
    throw error;
  }
}

function describeBusy(file: string): string {
  const [owner] = lockHolders(file, (byte) => byte === firstLockedByte);
  const which = owner === undefined ? '' : ` (process id ${owner})`;
  return `another textgate process is using it${which}. Stop that process, or set another storage.url`;
}

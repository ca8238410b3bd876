import { randomUUID } from 'node:crypto';
import { createReadStream, promises, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../../domain/ports/clock.ts';
import { StorageError } from '../../domain/storage-refusal.ts';
import type { DatabaseCopy } from '../../operations/maintenance.ts';
import { filesOf, makePrivateFile, sizeOf } from '../database-files.ts';
import { startDatabaseThread } from './thread.ts';
import type { StartThread } from './thread.ts';

/** The space that must remain on the disk beside a copy, in bytes: a full disk would stop the gateway. */
const spareBytes = 67_108_864;

/** The interval at which a growing copy is synced to the disk, in milliseconds. */
const syncMs = 100;

/** The size of the pieces in which a copy is deleted, in bytes. */
const pieceBytes = 16_777_216;

const infix = '.copy-';

/**
 * Copies a database to a file beside it, in a thread that ends with the copy. Rejects with a `StorageError` when the
 * disk has no room for it.
 */
export async function copyDatabase(
  path: string,
  clock: Clock,
  startThread?: StartThread,
): Promise<DatabaseCopy> {
  checkRoom(path);
  const target = `${path}${infix}${randomUUID()}`;
  const remove = (): Promise<void> => removeInPieces(target);
  try {
    makePrivateFile(target);
    const thread = startDatabaseThread(
      { role: 'copier', path, name: path, durability: 'normal', target },
      { maxWaiting: 0, clock, start: startThread },
    );
    try {
      await syncUntil(thread.opened, target, clock);
    } finally {
      // Also after a failed sync: otherwise the thread would write on to a deleted file.
      await thread.close();
    }
    return { bytes: statSync(target).size, read: () => createReadStream(target), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Syncs a file to the disk while it is being written. One sync at the end would fill the disk's queue, and every commit
 * meanwhile would wait behind it.
 */
async function syncUntil(written: Promise<unknown>, target: string, clock: Clock): Promise<void> {
  const file = await promises.open(target, 'r');
  try {
    for (let isWritten = false; !isWritten;) {
      const pause = Promise.withResolvers<false>();
      const cancel = clock.schedule(syncMs, () => pause.resolve(false));
      isWritten = await Promise.race([written.then(() => true), pause.promise]);
      cancel();
      await file.sync();
    }
  } finally {
    await file.close();
  }
}

/**
 * Deletes a file piece by piece, from its end. Deleting a large file at once keeps the file system busy for so long that
 * commits wait, and deleting it synchronously would stop the requests of this thread.
 */
async function removeInPieces(path: string): Promise<void> {
  for (let bytes = (sizeOf(path) ?? 0) - pieceBytes; bytes > 0; bytes -= pieceBytes)
    await promises.truncate(path, bytes);
  await promises.rm(path, { force: true });
}

/** Deletes unfinished copies of processes that were killed. */
export function removeOldCopies(path: string): void {
  const folder = dirname(path);
  const prefix = `${basename(path)}${infix}`;
  for (const name of readdirSync(folder))
    if (name.startsWith(prefix)) rmSync(join(folder, name), { force: true });
}

function checkRoom(path: string): void {
  const { bavail, bsize } = statfsSync(dirname(path));
  const { database, log } = filesOf(path);
  const wanted = (sizeOf(database) ?? 0) + (sizeOf(log) ?? 0) + spareBytes;
  if (bavail * bsize < wanted)
    throw new StorageError(
      `a copy needs ${wanted} bytes on the disk of the database, which has ${bavail * bsize}`,
    );
}

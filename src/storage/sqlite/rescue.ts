import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { makePrivateFile } from '../private-files.ts';
import { fileIdOf, filesOf } from './file-ids.ts';
import type { FileIds } from './file-ids.ts';

/**
 * Writes an open database whose file was deleted or replaced back to the disk, and closes it: to its own path if no file
 * is there, else beside it. Returns its new path. Throws when it can't be written, and is lost.
 */
export function rescue(database: DatabaseSync, path: string, files: FileIds): string {
  const stamp = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const beside = `${path}.rescued-${stamp}`;
  writeCopy(database, beside);
  database.close();
  // SQLite leaves the log of a moved database where it is. It would be replayed onto whatever file has the path next.
  const { log } = filesOf(path);
  if (files.log !== null && fileIdOf(log) === files.log)
    for (const file of [log, `${path}-shm`]) rmSync(file, { force: true });
  if (existsSync(path)) return beside;
  renameSync(beside, path);
  syncToDisk(dirname(path));
  return path;
}

/** Writes a consistent copy to an empty file, and syncs it to the disk before it returns. */
export function writeCopy(database: DatabaseSync, target: string): void {
  makePrivateFile(target);
  database.prepare('VACUUM INTO ?').run(target);
  syncToDisk(target);
}

/** SQLite does not wait for the disk when it writes a copy. */
function syncToDisk(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

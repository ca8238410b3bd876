import { renameSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { makePrivateFile } from '../private-files.ts';
import { filesOf } from './file-ids.ts';

/**
 * Makes the file of a database where none of its files is, under the lock of its owner. It appears with its header, so that a
 * start that is killed leaves no empty file. Throws, and changes nothing, where the file is empty or only its log is left: a
 * database was there, and a new one would have none of its keys and balances.
 */
export function makeNewFile(path: string, name: string): void {
  const size = sizeOf(path);
  const { log } = filesOf(path);
  if (size === 0) throw new Error(`its file is empty (0 bytes). ${whatToDo(name)}`);
  if (size !== null) return;
  if ((sizeOf(log) ?? 0) > 0)
    throw new Error(`its file is gone, and only its log is there. ${whatToDo(name)}`);
  const made = `${path}.new-${process.pid}`;
  try {
    makePrivateFile(made);
    const database = new DatabaseSync(made);
    database.exec('PRAGMA journal_mode = WAL');
    database.close();
    renameSync(made, path);
  } finally {
    for (const end of ['', '-wal', '-shm']) rmSync(made + end, { force: true });
  }
}

function sizeOf(file: string): number | null {
  return statSync(file, { throwIfNoEntry: false })?.size ?? null;
}

function whatToDo(name: string): string {
  return `If it had keys and balances, restore a backup:\n  textgate restore BACKUP --to ${name}\nOtherwise, to begin anew, remove ${name} and ${name}-wal`;
}

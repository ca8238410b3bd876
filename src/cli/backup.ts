import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { databaseOf } from '../storage/private-files.ts';
import { whyDamaged } from '../storage/sqlite/check-file.ts';
import { openAdmin } from './admin-client.ts';
import { describeError } from './describe-error.ts';

/**
 * How many bytes are written between two syncs to the disk: a larger sync would delay the commits of a gateway on the
 * same disk.
 */
const syncBytes = 4_194_304;

/**
 * Renames the copy to its final name only when it is complete, synced to the disk and checked. So a file with that name
 * is a usable backup, and a failed copy leaves the previous one unchanged.
 */
export async function backUp(file: string, force: boolean): Promise<string> {
  const database = databaseOf(file);
  if (database !== null)
    throw new Error(
      `${file} belongs to the database ${database} of a gateway: choose another file. If no gateway uses it any more, delete ${database}-owner first`,
    );
  if (existsSync(file) && !force) throw new Error(`${file} exists: choose another file, or use --force`);
  const answer = await openAdmin('/admin/backup');
  const partial = `${file}.partial-${process.pid}`;
  try {
    await save(answer, partial).catch((error: unknown) => {
      throw new Error(`the backup was interrupted: ${describeError(error)}`, { cause: error });
    });
    const damage = whyDamaged(partial);
    if (damage !== null) throw new Error(`the backup was damaged and has been deleted: ${damage}`);
    moveIntoPlace(partial, file, force);
  } finally {
    rmSync(partial, { force: true });
  }
  return `backup complete: ${file}, ${Number(answer.headers['content-length'])} bytes, checked`;
}

/** Writes a file; resolves when all of its bytes are on the disk. */
async function save(content: AsyncIterable<Uint8Array>, path: string): Promise<void> {
  const file = openSync(path, 'wx', 0o600);
  try {
    let unsyncedBytes = 0;
    for await (const piece of content) {
      writeFileSync(file, piece);
      unsyncedBytes += piece.length;
      if (unsyncedBytes < syncBytes) continue;
      fdatasyncSync(file);
      unsyncedBytes = 0;
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Renames the copy, and syncs its folder, or a power failure could undo the renaming. */
function moveIntoPlace(partial: string, file: string, force: boolean): void {
  if (existsSync(file) && !force)
    throw new Error(`${file} was created in the meantime: choose another file, or use --force`);
  renameSync(partial, file);
  const folder = openSync(dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

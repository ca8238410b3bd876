import { existsSync, rmSync } from 'node:fs';
import { databaseOf } from '../../storage/database-files.ts';
import { whyDamaged } from '../../storage/sqlite/check-file.ts';
import { openAdmin } from '../admin-client.ts';
import { describeError } from '../describe-error.ts';
import { moveIntoPlace, saveFile } from './save-file.ts';

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
    await saveFile(answer, partial).catch((error: unknown) => {
      throw new Error(`the backup was interrupted: ${describeError(error)}`, { cause: error });
    });
    const damage = whyDamaged(partial);
    if (damage !== null) throw new Error(`the backup was damaged and has been deleted: ${damage}`);
    if (existsSync(file) && !force)
      throw new Error(`${file} was created in the meantime: choose another file, or use --force`);
    moveIntoPlace(partial, file);
  } finally {
    rmSync(partial, { force: true });
  }
  return `backup complete: ${file}, ${Number(answer.headers['content-length'])} bytes, checked`;
}

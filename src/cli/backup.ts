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
import type { Command } from 'commander';
import { whyDamaged } from '../storage/sqlite/check-file.ts';
import { openAdmin } from './admin-client.ts';
import { report } from './output.ts';

/**
 * How much is written before it is brought to the disk, in bytes: more at a time would have the commits of a gateway on
 * the same disk wait behind it.
 */
const syncBytes = 4_194_304;

/** Adds `textgate backup`. */
export function addBackupCommand(program: Command): void {
  program
    .command('backup <file>')
    .description('copy the database of the running gateway to a file, and check the copy')
    .option('--force', 'replace the file if there is one')
    .action((file: string, { force = false }: { force?: boolean }) => report(() => backUp(file, force)));
}

/**
 * The copy gets its name when it is complete, on the disk and sound: what stands under the name of a backup is one, and a
 * copy that fails leaves the one before it as it was.
 */
async function backUp(file: string, force: boolean): Promise<string> {
  if (existsSync(file) && !force) throw new Error(`${file} exists: name another file, or give --force`);
  const answer = await openAdmin('/admin/backup');
  const partial = `${file}.partial-${process.pid}`;
  try {
    await save(answer, partial).catch((error: unknown) => {
      throw new Error(`the backup broke off: ${error instanceof Error ? error.message : String(error)}`);
    });
    const damage = whyDamaged(partial);
    if (damage !== null) throw new Error(`the backup is damaged, and was deleted: ${damage}`);
    moveIntoPlace(partial, file, force);
  } finally {
    rmSync(partial, { force: true });
  }
  return `${file} is a complete copy: ${Number(answer.headers['content-length'])} bytes, checked`;
}

/** Writes a file that has all of its bytes on the disk when this resolves. */
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

/** With its folder on the disk, too, or a loss of power could take the name away again. */
function moveIntoPlace(partial: string, file: string, force: boolean): void {
  if (existsSync(file) && !force)
    throw new Error(`${file} exists by now: name another file, or give --force`);
  renameSync(partial, file);
  const folder = openSync(dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

import { closeSync, fdatasyncSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * How many bytes are written between two syncs to the disk: a larger sync would delay the commits of a gateway on the
 * same disk.
 */
const syncBytes = 4_194_304;

/** Writes a new file, readable for its owner alone; resolves when all of its bytes are on the disk. */
export async function saveFile(content: AsyncIterable<Uint8Array>, path: string): Promise<void> {
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

/** Renames a complete file to its final name, and syncs its folder, or a power failure could undo the renaming. */
export function moveIntoPlace(partial: string, file: string): void {
  renameSync(partial, file);
  const folder = openSync(dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

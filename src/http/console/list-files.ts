import { readdir } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { join, sep } from 'node:path';

/** The page, which is found at the empty path. */
export const page = 'index.html';

/**
 * Lists what is in the first of some folders that has the console's page, and in its own folders: the places of files and
 * folders by their paths, in which `/` separates folders on every system.
 */
export async function listFiles(folders: readonly URL[]): Promise<ReadonlyMap<string, URL>> {
  for (const folder of folders.map((url) => fileURLToPath(url))) {
    // By their names alone: `withFileTypes` has wrong ones for the files in an executable.
    const names = await readdir(folder, { recursive: true }).catch((): readonly string[] => []);
    if (names.includes(page))
      return new Map(names.map((name) => [name.split(sep).join('/'), pathToFileURL(join(folder, name))]));
  }
  return new Map();
}

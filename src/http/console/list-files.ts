import { readdir } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { join, relative, sep } from 'node:path';

/** The page, which is found at the empty path. */
export const page = 'index.html';

/**
 * Lists the files of the first of some folders that has the console's page, with those of its own folders: their places
 * by their paths, in which `/` separates folders on every system.
 */
export async function listFiles(folders: readonly URL[]): Promise<ReadonlyMap<string, URL>> {
  for (const folder of folders.map((url) => fileURLToPath(url))) {
    const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
    const files = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file) => [relative(folder, file).split(sep).join('/'), pathToFileURL(file)] as const);
    if (files.some(([path]) => path === page)) return new Map(files);
  }
  return new Map();
}

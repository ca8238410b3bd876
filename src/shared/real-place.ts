import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

/** The real path of a file that need not exist, in a folder that does: also behind a symlink to a file that is not there yet. */
export function realPlace(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const folder = realpathSync(dirname(path));
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink ? realPlace(resolve(folder, readlinkSync(path))) : join(folder, basename(path));
}

import { realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { realPlace } from '../shared/real-place.ts';
import { adminTokenName, oldAdminTokenFile } from './admin-token.ts';

/** What decides where a generated admin token is. */
interface TokenSettings {
  /** The folder that the config names. */
  readonly tokenFolder: string | undefined;
  /** The URL of the database. */
  readonly databaseUrl: string;
  readonly configFile: string | undefined;
}

/**
 * The file of a generated admin token: in the folder that the config names, or else beside the real file of a SQLite
 * database, or else, where the database is no file, beside the config file. `null` where nothing says a folder: nodes on one
 * database would each make a token of their own.
 */
export function adminTokenPlace({ tokenFolder, databaseUrl, configFile }: TokenSettings): string | null {
  if (tokenFolder !== undefined) return join(tokenFolder, adminTokenName);
  const [, file] = /^sqlite:(.*)/.exec(databaseUrl) ?? [];
  if (file !== undefined && file !== ':memory:') return join(folderOf(file), adminTokenName);
  if (configFile !== undefined) return join(dirname(configFile), adminTokenName);
  return file === undefined ? null : oldAdminTokenFile;
}

/** The folder of a file: that to which a link leads, or else the one in its path, as it is written. */
function folderOf(file: string): string {
  const written = dirname(file);
  try {
    const real = dirname(realPlace(file));
    return real === realpathSync(written) ? written : real;
  } catch {
    // The folder is not there yet, and so no link either.
    return written;
  }
}

/** Whether two paths name one place. */
export function isSamePlace(one: string, other: string): boolean {
  return resolve(one) === resolve(other);
}

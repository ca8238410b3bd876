import { chmodSync, closeSync, existsSync, mkdirSync, openSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { realPlace } from '../shared/real-place.ts';

/** The end of the name of the file that a gateway locks while it uses a database. */
const ownerEnd = '-owner';

/** The end of the name of the file with the settlements that a database has not taken. */
const spoolEnd = '-settlements';

/** The ends of the names of a database's files. */
const ends = ['', '-wal', '-shm', ownerEnd, spoolEnd];

/** The spool of a database in a file: beside its real path. */
export function spoolOf(database: string): string {
  return database + spoolEnd;
}

/**
 * The database of a gateway that a file belongs to, as its log files do; `null` for any other file, which need not exist.
 * A gateway whose file is replaced loses its database.
 */
export function databaseOf(file: string): string | null {
  const path = existsSync(file) ? realpathSync(file) : file;
  const owned = ends
    .filter((end) => path.endsWith(end))
    .map((end) => path.slice(0, path.length - end.length))
    .find((database) => existsSync(database + ownerEnd));
  return owned ?? null;
}

/**
 * Makes the files of a database that this user owns readable for their owner alone: they hold key hashes, records and
 * money, and may stem from a copy or from an older version. Returns how many had to be changed. The folder keeps its mode:
 * it may be shared. `database` is a real path.
 */
export function makeFilesPrivate(database: string): number {
  if (database === ':memory:' || process.platform === 'win32') return 0;
  const shared = ends
    .map((end) => database + end)
    .filter((file) => {
      const stats = statSync(file, { throwIfNoEntry: false });
      return (
        stats !== undefined &&
        stats.isFile() &&
        stats.uid === process.getuid?.() &&
        (stats.mode & 0o077) !== 0
      );
    });
  for (const file of shared) chmodSync(file, 0o600);
  return shared.length;
}

/**
 * The one name of a database file, whichever symlink or relative path leads to it: the lock and the
 * spool beside it are then the same for all of them. Its folder is created when it is not there, and the file by who opens it.
 */
export function realDatabasePath(path: string): string {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  return realPlace(path);
}

/**
 * Creates a file for its owner alone before SQLite opens it, because SQLite's log files take over its mode. An existing
 * file is not opened: closing it again would release the locks that this process has on it.
 */
export function makePrivateFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    realpathSync(path);
  } catch {
    closeSync(openSync(path, 'a', 0o600));
  }
}

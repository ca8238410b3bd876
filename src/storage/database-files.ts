import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  promises,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { realPlace } from '../shared/real-place.ts';

/** The end of the name of the file that a gateway locks while it uses a database. */
const ownerEnd = '-owner';

/** The end of the name of the file with the settlements that a database has not taken. */
const spoolEnd = '-settlements';

/** The ends of the names of a database's write-ahead log, and of the index of that. */
const logEnds = ['-wal', '-shm'];

/** The ends of the names of a database's files. */
const ends = ['', ...logEnds, ownerEnd, spoolEnd];

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

/** The identity of a file: its device and inode. */
type FileId = string;

/** The files of an open database, as they were when it was opened. */
export interface FileIds {
  readonly database: FileId;
  readonly log: FileId | null;
  readonly lock: FileId | null;
}

/** A file as it is at a path. */
interface FoundFile {
  readonly id: FileId;
  readonly bytes: number;
  /** Differs whenever the file was written, but for writes within a few milliseconds. */
  readonly state: string;
}

/** The paths of a database's files. All three belong together, and none may be replaced while it is open. */
export function filesOf(path: string): Readonly<Record<keyof FileIds, string>> {
  return { database: path, log: `${path}-wal`, lock: path + ownerEnd };
}

/** The file that is at a path now; `null` when there is none. */
export function fileIdOf(path: string): FileId | null {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? null : `${stats.dev}:${stats.ino}`;
}

/** What is at a path, without waiting for the disk; `undefined` when the file system gives no answer. */
export async function lookUpFile(path: string): Promise<FoundFile | null | undefined> {
  try {
    const { dev, ino, size, mtimeNs } = await promises.stat(path, { bigint: true });
    return { id: `${dev}:${ino}`, bytes: Number(size), state: `${mtimeNs} ${size}` };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ENOTDIR' ? null : undefined;
  }
}

export function idsOf(path: string): FileIds {
  const { database, log, lock } = filesOf(path);
  return { database: fileIdOf(database) ?? '', log: fileIdOf(log), lock: fileIdOf(lock) };
}

/**
 * The ids of the other processes that have locked a byte of a file; none where they can't be found, as in another container or
 * on another system than Linux. The file itself can't be read for it: in a process that has a lock on it, closing a second
 * descriptor would release that.
 */
export function lockHolders(file: string, isLocked: (firstByte: number) => boolean): readonly number[] {
  try {
    const { ino } = statSync(file);
    // Such as `7: POSIX  ADVISORY  WRITE 4711 fd:01:1234 1073741824 1073742335`.
    const lock = new RegExp(String.raw`POSIX .* (?:READ|WRITE) +(\d+) \w+:\w+:${ino} (\d+) `, 'g');
    const found = [...readFileSync('/proc/locks', 'utf8').matchAll(lock)]
      .filter(([, , first]) => isLocked(Number(first)))
      .map(([, id]) => Number(id))
      .filter((id) => id > 0 && id !== process.pid);
    return [...new Set(found)];
  } catch {
    return [];
  }
}

/** The size of a file, in bytes; `null` when there is none. */
export function sizeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null;
}

/** Waits until a file, or the names in a folder, are on the disk: SQLite does not when it writes a copy. */
export function syncToDisk(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Removes the log of a database: SQLite would replay it onto whatever file has the path next. */
export function removeLog(path: string): void {
  for (const end of logEnds) rmSync(path + end, { force: true });
}

/** Removes a database with its log. */
export function removeDatabase(path: string): void {
  rmSync(path, { force: true });
  removeLog(path);
}

/** The time, as the names of files have it that are kept aside. */
export function stampOf(now: Date): string {
  return now.toISOString().replaceAll(/[-:]|\.\d+/g, '');
}

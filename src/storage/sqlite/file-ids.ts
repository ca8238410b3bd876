import { promises, statSync } from 'node:fs';

/** The identity of a file: its device and inode. */
export type FileId = string;

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
  return { database: path, log: `${path}-wal`, lock: `${path}-owner` };
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

import { promises, readFileSync, statSync } from 'node:fs';
import type { Stats } from 'node:fs';

/** Why a file can't be read, in words for the operator; `null` for an unusual code of a system call. */
export function describeReadFault(code: string | undefined): string | null {
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EISDIR') return 'this is a folder, and not a file';
  return code === 'EACCES' ? 'this user may not read the file' : null;
}

/** Reads a file that holds a secret. Throws with the reason, which quotes neither its path nor its content. */
export function readSmallFile(file: string, maxBytes: number): string {
  try {
    checkFile(statSync(file), maxBytes);
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw withoutPath(error);
  }
}

/** As `readSmallFile`, for a process that serves requests. */
export async function readSmallFileAgain(file: string, maxBytes: number): Promise<string> {
  try {
    checkFile(await promises.stat(file), maxBytes);
    return await promises.readFile(file, 'utf8');
  } catch (error) {
    throw withoutPath(error);
  }
}

/** A pipe can't be read twice, and a device may never end. */
function checkFile(stats: Stats, maxBytes: number): void {
  if (!stats.isFile()) throw new Error('this is no regular file');
  if (stats.size > maxBytes) throw new Error(`the file has more than ${maxBytes} bytes`);
}

/** The reason without the path and the stack, which begins with the message of a system call and so has the path, too. */
function withoutPath(error: unknown): Error {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return error as Error;
  return new Error(describeReadFault(code) ?? `the file can't be read (${code})`);
}

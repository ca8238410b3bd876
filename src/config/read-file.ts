import { closeSync, openSync, promises, readFileSync, readSync, statSync } from 'node:fs';
import type { Stats } from 'node:fs';

/** Why a file can't be read, in words for the operator; `null` for an unusual code of a system call. */
export function describeReadFault(code: string | undefined): string | null {
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EISDIR') return 'this is a folder, and not a file';
  return code === 'EACCES' ? 'this user may not read the file' : null;
}

/** How much of a file is read at a time, in bytes: most are shorter. */
const partBytes = 16_384;

/** Reads a file or a pipe of UTF-8 to its end. Throws beyond `maxBytes`, as a device may never end, and for other encodings. */
export function readText(file: string, maxBytes: number): string {
  const opened = openSync(file, 'r');
  try {
    const parts: Buffer[] = [];
    let length = 0;
    for (let read = 1; read > 0 && length <= maxBytes; length += read) {
      const part = Buffer.allocUnsafe(partBytes);
      read = readSync(opened, part, 0, partBytes, null);
      parts.push(part.subarray(0, read));
    }
    if (length > maxBytes) throw tooLarge(maxBytes);
    return decode(Buffer.concat(parts, length));
  } finally {
    closeSync(opened);
  }
}

/** A character of another encoding would be a damaged one, and UTF-16 has zeros. */
function decode(bytes: Buffer): string {
  try {
    if (!bytes.includes(0)) return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // As for zeros.
  }
  throw new Error('the file is not in UTF-8: save it in that encoding');
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
  if (stats.size > maxBytes) throw tooLarge(maxBytes);
}

function tooLarge(maxBytes: number): Error {
  return new Error(`the file has more than ${maxBytes} bytes`);
}

/** The reason without the path and the stack, which begins with the message of a system call and so has the path, too. */
function withoutPath(error: unknown): Error {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return error as Error;
  return new Error(describeReadFault(code) ?? `the file can't be read (${code})`);
}

import { promises, readFileSync, statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { describeSurroundings } from './around-secret.ts';
import { describeReadFault } from './read-fault.ts';
import { secret } from './schema/values.ts';

/** The largest text of a secret, in bytes: servers accept no larger header. */
export const maxSecretBytes = 16_384;

/**
 * Reads the secret in a file, without blanks and line feeds around it. Throws with the reason, which quotes neither the
 * secret nor the path: a secret may have been written in its place.
 */
export function readSecretFile(file: string): string {
  try {
    checkFile(statSync(file));
    return checkText(readFileSync(file, 'utf8'));
  } catch (error) {
    throw withoutPath(error);
  }
}

/** As `readSecretFile`, for a process that serves requests. */
export async function readSecretFileAgain(file: string): Promise<string> {
  try {
    checkFile(await promises.stat(file));
    return checkText(await promises.readFile(file, 'utf8'));
  } catch (error) {
    throw withoutPath(error);
  }
}

/** A pipe can't be read twice, and a device may never end. */
function checkFile(stats: Stats): void {
  if (!stats.isFile()) throw new Error('this is no regular file');
  if (stats.size > maxSecretBytes) throw new Error(`the file has more than ${maxSecretBytes} bytes`);
}

function checkText(text: string): string {
  const read = secret.safeParse(text);
  if (read.success) return read.data;
  const surroundings = describeSurroundings(text);
  if (surroundings !== null) throw new Error(surroundings);
  throw new Error(
    text.trim() === '' ? 'the file is empty' : 'the file holds more than one line of printable ASCII',
  );
}

/** The reason without the path and the stack, which begins with the message of a system call and so has the path, too. */
function withoutPath(error: unknown): Error {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return error as Error;
  return new Error(describeReadFault(code) ?? `the file can't be read (${code})`);
}

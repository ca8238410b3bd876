import { readSmallFile, readSmallFileAgain } from './read-file.ts';
import { describeSurroundings, secret } from './schema/values.ts';

/** The largest text of a secret, in bytes: servers accept no larger header. */
export const maxSecretBytes = 16_384;

/**
 * Reads the secret in a file, without blanks and line feeds around it. Throws with the reason, which quotes neither the
 * secret nor the path: a secret may have been written in its place.
 */
export function readSecretFile(file: string): string {
  return checkSecret(readSmallFile(file, maxSecretBytes), 'the file is empty', 'the file holds');
}

/** As `readSecretFile`, for a process that serves requests. */
export async function readSecretFileAgain(file: string): Promise<string> {
  return checkSecret(await readSmallFileAgain(file, maxSecretBytes), 'the file is empty', 'the file holds');
}

/** Checks what was read as a secret, without blanks around it; says that it `isEmpty`, or what its source `holds`. */
export function checkSecret(text: string, isEmpty: string, holds: string): string {
  const read = secret.safeParse(text);
  if (read.success) return read.data;
  const surroundings = describeSurroundings(text);
  if (surroundings !== null) throw new Error(surroundings);
  throw new Error(text.trim() === '' ? isEmpty : `${holds} more than one line of printable ASCII`);
}

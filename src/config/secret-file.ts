import { readSmallFile, readSmallFileAgain } from './read-file.ts';
import { describeSurroundings, secret } from './schema/values.ts';

/** The largest text of a secret, in bytes: servers accept no larger header. */
export const maxSecretBytes = 16_384;

/**
 * Reads the secret in a file, without blanks and line feeds around it. Throws with the reason, which quotes neither the
 * secret nor the path: a secret may have been written in its place.
 */
export function readSecretFile(file: string): string {
  return checkText(readSmallFile(file, maxSecretBytes));
}

/** As `readSecretFile`, for a process that serves requests. */
export async function readSecretFileAgain(file: string): Promise<string> {
  return checkText(await readSmallFileAgain(file, maxSecretBytes));
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

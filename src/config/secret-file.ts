import { promises, readFileSync, statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { secret } from './schema/values.ts';

/** The largest file of a secret, in bytes: servers accept no larger header. */
const maxSecretBytes = 16_384;

/** Reads the secret in a file, without blanks and line feeds around it. Throws with the reason, which never quotes it. */
export function readSecretFile(file: string): string {
  checkFile(file, statSync(file));
  return checkText(file, readFileSync(file, 'utf8'));
}

/** As `readSecretFile`, for a process that serves requests. */
export async function readSecretFileAgain(file: string): Promise<string> {
  checkFile(file, await promises.stat(file));
  return checkText(file, await promises.readFile(file, 'utf8'));
}

/** A pipe can't be read twice, and a device may never end. */
function checkFile(file: string, stats: Stats): void {
  if (!stats.isFile()) throw new Error(`${file} is no regular file`);
  if (stats.size > maxSecretBytes) throw new Error(`${file} has more than ${maxSecretBytes} bytes`);
}

function checkText(file: string, text: string): string {
  const read = secret.safeParse(text);
  if (read.success) return read.data;
  throw new Error(
    text.trim() === '' ? `${file} is empty` : `${file} holds more than one line of printable ASCII`,
  );
}

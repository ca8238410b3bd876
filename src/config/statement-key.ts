import { createPrivateKey } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { signingKeyOf } from '../shared/signing-key.ts';
import type { SigningKey } from '../shared/signing-key.ts';
import { describeReadFault } from './read-fault.ts';

/** The largest file of a key, in bytes: one of Ed25519 has some hundred. */
const maxFileBytes = 16_384;

/** Reads the private key that signs statements. Throws with the reason, which quotes neither the path nor the content. */
export function readStatementKey(file: string): SigningKey {
  const pem = readPem(file);
  if (!pem.includes('PRIVATE KEY-----')) throw new Error(expected);
  if (pem.includes('ENCRYPTED')) throw new Error(`the key has a passphrase: ${expected}`);
  try {
    return signingKeyOf(createPrivateKey(pem));
  } catch {
    throw new Error(expected);
  }
}

const expected = 'expected a private key of Ed25519 in PEM, as openssl genpkey -algorithm ed25519 writes it';

function readPem(file: string): string {
  try {
    const stats = statSync(file);
    // A pipe can't be read twice, and a device may never end.
    if (!stats.isFile()) throw new Error('this is no regular file');
    if (stats.size > maxFileBytes) throw new Error(`the file has more than ${maxFileBytes} bytes`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new Error(describeReadFault(code) ?? `the file can't be read (${code})`, { cause: error });
  }
}

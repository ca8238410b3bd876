import { createPrivateKey } from 'node:crypto';
import { signingKeyOf } from '../shared/signing-key.ts';
import type { SigningKey } from '../shared/signing-key.ts';
import { readSmallFile } from './read-file.ts';

/** The largest file of a key, in bytes: one of Ed25519 has some hundred. */
const maxFileBytes = 16_384;

/** Reads the private key that signs statements. Throws with the reason, which quotes neither the path nor the content. */
export function readStatementKey(file: string): SigningKey {
  const pem = readSmallFile(file, maxFileBytes);
  if (!pem.includes('PRIVATE KEY-----')) throw new Error(expected);
  if (pem.includes('ENCRYPTED')) throw new Error(`the key has a passphrase: ${expected}`);
  try {
    return signingKeyOf(createPrivateKey(pem));
  } catch {
    throw new Error(expected);
  }
}

const expected = 'expected a private key of Ed25519 in PEM, as openssl genpkey -algorithm ed25519 writes it';

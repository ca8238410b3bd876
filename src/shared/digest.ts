import { createHash, hash } from 'node:crypto';

/** SHA-256 of a text in UTF-8, as 64 hexadecimal digits. */
export function digest(text: string): string {
  return hash('sha256', text);
}

/** SHA-256 of a text and of bytes behind it, likewise. */
export function digestOf(text: string, bytes: Uint8Array): string {
  return createHash('sha256').update(text).update(bytes).digest('hex');
}

/**
 * The hash by which a key is stored and found, in hexadecimal. SHA-256 suffices where the secret can't be guessed: issued
 * keys have 256 random bits, and declared ones are checked (`domain/keys/guessable-key.ts`).
 */
export function hashKey(presented: string): string {
  return hash('sha256', presented, 'hex');
}

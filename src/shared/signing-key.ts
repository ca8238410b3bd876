import { createPublicKey, hash, sign, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

/** How many hexadecimal digits of the hash of a public key name it. */
const idLength = 16;

/** A key that signs statements, or has signed some. */
export interface PublicKey {
  /** The beginning of the SHA-256 of its 32 bytes. */
  readonly id: string;
  /** In PEM. */
  readonly pem: string;
}

/** The key that signs now. */
export interface SigningKey extends PublicKey {
  readonly privateKey: KeyObject;
}

/** The public key in a PEM, also that of a private one. Throws if it is none of Ed25519. */
export function readPublicKey(pem: string | KeyObject): PublicKey & { readonly key: KeyObject } {
  const key = typeof pem === 'string' || pem.type === 'private' ? createPublicKey(pem) : pem;
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('expected a key of Ed25519');
  const { x = '' } = key.export({ format: 'jwk' });
  return {
    id: hash('sha256', Buffer.from(x, 'base64url')).slice(0, idLength),
    pem: key.export({ format: 'pem', type: 'spki' }),
    key,
  };
}

/** The key pair of a private key of Ed25519. */
export function signingKeyOf(privateKey: KeyObject): SigningKey {
  const { id, pem } = readPublicKey(privateKey);
  return { id, pem, privateKey };
}

/** Signs a text in ASCII; base64. */
export function signText(text: string, { privateKey }: SigningKey): string {
  return sign(null, Buffer.from(text, 'latin1'), privateKey).toString('base64');
}

/** Whether a signature is that of a text in ASCII. */
export function isSigned(text: string, signature: string, key: KeyObject): boolean {
  const bytes = Buffer.from(signature, 'base64');
  // Another text of the same bytes would be a file that was changed and still counts as signed.
  return bytes.toString('base64') === signature && verify(null, Buffer.from(text, 'latin1'), key, bytes);
}

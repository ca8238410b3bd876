import type { Compatibility } from '../protocol/contract/compatibility.ts';
import type { Limits } from './limits.ts';

/** What a key looks like: `sk-tg-<12 public characters>-<43 secret ones>`. */
export const keyPattern = /^sk-tg-[A-Za-z0-9]{12}-[A-Za-z0-9_-]{43}$/;

/** The bytes that `mintKey` needs: 12 for the public part, 32 (256 bits) for the secret. */
export const keyEntropyBytes = 44;

const publicLength = 12;
const publicAlphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** A key as the service knows it. The secret itself is shown once and never kept. */
export interface ApiKey {
  /** `key_` and the public part of the key. */
  readonly id: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** The limits of this key alone; what is left out is the service's default. */
  readonly limits: Partial<Limits>;
  /** Whether its requests are paid from a balance of its own. */
  readonly hasBalance: boolean;
  /** Where this key differs from the service in how its requests are read. */
  readonly compatibility: Partial<Compatibility>;
}

/** What a key may be given of its own when it is made. */
export interface KeySettings extends Partial<Limits> {
  readonly compatibility?: Partial<Compatibility>;
  /** What its requests are paid from, in nano-USD; a key that is made without one may spend without end. */
  readonly balanceNanos?: number;
}

/** Makes a key's public id and its full text out of random bytes. */
export function mintKey(entropy: Uint8Array): { readonly id: string; readonly secret: string } {
  if (entropy.length !== keyEntropyBytes) throw new RangeError(`a key takes ${keyEntropyBytes} random bytes`);
  let name = '';
  for (const byte of entropy.subarray(0, publicLength)) name += publicAlphabet[byte % publicAlphabet.length];
  const secret = Buffer.from(entropy.subarray(publicLength)).toString('base64url');
  return { id: `key_${name}`, secret: `sk-tg-${name}-${secret}` };
}

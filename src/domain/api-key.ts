import type { Compatibility } from '../protocol/contract/compatibility.ts';
import { checksumLength, checksumOf } from '../shared/checksum.ts';
import type { Limits } from './limits.ts';

/** `sk-tg-<12 public characters>-<43 secret ones>`, and a checksum of all before it in keys issued since there is one. */
const keyPattern = /^sk-tg-[A-Za-z0-9]{12}-[A-Za-z0-9_-]{43}([A-Za-z0-9]{6})?$/;

/**
 * Whether a text can be a key at all: a misspelt or invented one is refused without a look-up. Keys issued before there
 * was a checksum have none, and pass by their form alone.
 */
export function isWellFormed(presented: string): boolean {
  const checksum = keyPattern.exec(presented);
  if (checksum === null) return false;
  return checksum[1] === undefined || checksum[1] === checksumOf(presented.slice(0, -checksumLength));
}

/** The bytes that `mintKey` needs: 12 for the public part, 32 (256 bits) for the secret. */
export const keyEntropyBytes = 44;

/** Of these, the bytes of the secret alone. */
export const secretEntropyBytes = 32;

const publicLength = 12;
const publicAlphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** A key as the service knows it. The secret itself is shown once and never kept. */
export interface ApiKey {
  /** `key_` and the public part of the key. */
  readonly id: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  /** The limits of this key alone; what is left out is the service's default. */
  readonly limits: Partial<Limits>;
  /** The models that it may use; `null` for all. */
  readonly models: readonly string[] | null;
  /** Milliseconds since 1970, from which on it is no key any more; `null` for never. */
  readonly expiresAt: number | null;
  /** Milliseconds since 1970, at which it was taken back; `null` while it is in use. */
  readonly revokedAtMs: number | null;
  /** Whether its requests are paid from a balance of its own. */
  readonly hasBalance: boolean;
  /** Where this key differs from the service in how its requests are read. */
  readonly compatibility: Partial<Compatibility>;
}

/** What a key may be given of its own when it is made. */
export interface KeySettings extends Partial<Limits> {
  readonly models?: readonly string[];
  /** Milliseconds since 1970. */
  readonly expiresAt?: number;
  readonly compatibility?: Partial<Compatibility>;
  /** What its requests are paid from, in nano-USD; a key that is made without one may spend without end. */
  readonly balanceNanos?: number;
}

/** What of a key may be changed later. `null` takes a setting away; what is left out stays. */
export interface KeyChanges {
  readonly name?: string;
  readonly concurrency?: number | null;
  readonly requestsPerMinute?: number | null;
  readonly queueWaitMs?: number | null;
  readonly models?: readonly string[] | null;
  readonly expiresAt?: number | null;
  readonly compatibility?: Partial<Compatibility>;
}

/** Whether a key may be used at a time. */
export function isUsable({ revokedAtMs: revokedAt, expiresAt }: ApiKey, now: number): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt > now);
}

/** Makes a key's public id and its full text out of random bytes. */
export function mintKey(entropy: Uint8Array): { readonly id: string; readonly secret: string } {
  if (entropy.length !== keyEntropyBytes) throw new RangeError(`a key takes ${keyEntropyBytes} random bytes`);
  let name = '';
  for (const byte of entropy.subarray(0, publicLength)) name += publicAlphabet[byte % publicAlphabet.length];
  const id = `key_${name}`;
  return { id, secret: mintSecret(id, entropy.subarray(publicLength)) };
}

/** Makes a new full text for a key that exists: its public part stays, so that people still know it. */
export function mintSecret(id: string, entropy: Uint8Array): string {
  if (entropy.length !== secretEntropyBytes)
    throw new RangeError(`a secret takes ${secretEntropyBytes} random bytes`);
  const text = `sk-tg-${id.slice('key_'.length)}-${Buffer.from(entropy).toString('base64url')}`;
  return text + checksumOf(text);
}

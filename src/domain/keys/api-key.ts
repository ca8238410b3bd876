import type { Compatibility } from '../../protocol/contract/compatibility.ts';
import { checksumLength, checksumOf } from '../../shared/checksum.ts';
import type { Budget, BudgetChanges } from '../budgets/budget.ts';
import type { Limits } from '../limits/limits.ts';
import { maxKeyLength, minKeyLength } from './guessable-key.ts';

/** `sk-tg-<12 public characters>-<43 secret characters>`, followed by a checksum in all but the oldest keys. */
const keyPattern = /^sk-tg-[A-Za-z0-9]{12}-[A-Za-z0-9_-]{43}([A-Za-z0-9]{6})?$/;

/**
 * Whether a text has the form and the checksum of a key, so that a misspelt or invented key is refused without a
 * look-up. Keys issued before checksums were introduced pass by their form alone.
 */
export function isWellFormed(presented: string): boolean {
  const checksum = keyPattern.exec(presented);
  if (checksum === null) return false;
  return checksum[1] === undefined || checksum[1] === checksumOf(presented.slice(0, -checksumLength));
}

/** The form of the keys of other gateways that can be imported; not that of ours, whose checksum says whether it is one. */
const importedPattern = /^sk-(?!tg-[A-Za-z0-9]{12}-)[\x21-\x7e]*$/;

/** Whether a text may be a key of another gateway that was imported by its hash. */
export function mayBeImported(presented: string): boolean {
  const { length } = presented;
  return length >= minKeyLength && length <= maxKeyLength && importedPattern.test(presented);
}

/** The bytes that `mintKey` needs: 12 for the public part, 32 (256 bits) for the secret. */
export const keyEntropyBytes = 44;

/** The bytes of the secret alone. */
export const secretEntropyBytes = 32;

const publicLength = 12;
const publicAlphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** The weight of a key without one of its own. */
export const defaultWeight = 1;

/** What holds for the requests of a key: it is set when a key is made, or declared, and most of it can be changed. */
export interface KeyTerms {
  /** This key's own limits; a missing one falls back to the service's default. */
  readonly limits: Partial<Limits>;
  /** The models that the key may use; `null` for all. */
  readonly models: readonly string[] | null;
  /** The networks from which the key may be used, in the form of `canonicalNetwork`; `null` for all. */
  readonly allowFrom: readonly string[] | null;
  /** The tags that its requests may have; without any, they have none. */
  readonly tags: readonly string[];
  /** When the key expires, in milliseconds since 1970; `null` for never. */
  readonly expiresAt: number | null;
  /** The balance below which it counts as low, in nano-USD; `null` for the service's default. */
  readonly lowBalanceNanos: number | null;
  /** What the key may spend in each period of a calendar; `null` for any amount. */
  readonly budget: Budget | null;
  /** The name of the group whose limits it shares; `null` for none. */
  readonly group: string | null;
  /** Its weight in the queues of upstreams: with 2, twice as many turns as a key with 1. */
  readonly weight: number;
  /**
   * How long a request of this key goes on whose client has gone, in milliseconds, so that a retry of an SDK joins it instead of
   * running anew; `null` for not at all. What is generated meanwhile is paid, whether a retry comes or not.
   */
  readonly joinRetriesMs: number | null;
  /** This key's own compatibility settings, which override the service's defaults. */
  readonly compatibility: Partial<Compatibility>;
}

/** An issued key. Its secret is shown once and never stored. */
export interface ApiKey extends KeyTerms {
  /** `key_` and the public part of the key. */
  readonly id: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  /** When the key was revoked, in milliseconds since 1970; `null` if it was not. */
  readonly revokedAtMs: number | null;
  /** Whether the key's requests are paid from a prepaid balance. */
  readonly hasBalance: boolean;
  /** Whether the config declares the key, or did until the key was revoked: it is changed there alone. */
  readonly isDeclared: boolean;
}

/** The terms that are values of their own, rather than sets of settings. */
type SingleTerm = Exclude<keyof KeyTerms, 'limits' | 'budget' | 'compatibility'>;

/** The settings of a key that is created, its limits by their own names; what is missing or `null` is not limited. */
export type KeySettings = Partial<Limits> & {
  readonly [Term in SingleTerm]?: NonNullable<KeyTerms[Term]> | null;
} & {
  readonly budget?: Budget | null;
  readonly compatibility?: Partial<Compatibility>;
  /** The prepaid balance in nano-USD; without one the key's spending is unlimited. */
  readonly balanceNanos?: number;
};

/** Changes to a key. `null` removes a setting; a missing field leaves it as it is. */
export type KeyChanges = { readonly [Limit in keyof Limits]?: number | null } & {
  readonly [Term in SingleTerm]?: NonNullable<KeyTerms[Term]> | null;
} & {
  readonly name?: string;
  readonly budget?: BudgetChanges | null;
  readonly compatibility?: Partial<Compatibility>;
};

/** Whether a key may be used at the time `now`: neither revoked nor expired. */
export function isUsable({ revokedAtMs: revokedAt, expiresAt }: ApiKey, now: number): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt > now);
}

/** Derives a key's public id and its full text from random bytes. */
export function mintKey(entropy: Uint8Array): { readonly id: string; readonly secret: string } {
  if (entropy.length !== keyEntropyBytes) throw new RangeError(`a key takes ${keyEntropyBytes} random bytes`);
  const id = idFrom(entropy);
  return { id, secret: mintSecret(id, entropy.subarray(publicLength)) };
}

/** The id of a key, from bytes of which the first twelve count. */
export function idFrom(bytes: Uint8Array): string {
  let name = '';
  for (const byte of bytes.subarray(0, publicLength)) name += publicAlphabet[byte % publicAlphabet.length];
  return `key_${name}`;
}

/** Derives a new full text for an existing key. Its public part stays, so that people still recognise the key. */
export function mintSecret(id: string, entropy: Uint8Array): string {
  if (entropy.length !== secretEntropyBytes)
    throw new RangeError(`a secret takes ${secretEntropyBytes} random bytes`);
  const text = `sk-tg-${id.slice('key_'.length)}-${Buffer.from(entropy).toString('base64url')}`;
  return text + checksumOf(text);
}

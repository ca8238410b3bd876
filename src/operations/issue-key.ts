import { keyEntropyBytes, mintKey } from '../domain/api-key.ts';
import type { ApiKey, KeySettings } from '../domain/api-key.ts';
import type { Clock } from '../domain/ports.ts';

/** A key just made: the only moment at which its secret can be seen. */
export interface IssuedKey {
  readonly key: ApiKey;
  readonly secret: string;
}

/** What issuing a key needs of the world. */
export interface KeyIssuer {
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Keeps the key under the hash of its secret. */
  readonly keep: (key: ApiKey, secret: string, balanceNanos: number | null) => Promise<void>;
}

/** Makes a key, keeps it, and returns it with its secret. */
export async function issueKey(
  name: string,
  { compatibility = {}, balanceNanos, ...limits }: KeySettings,
  { clock, randomBytes, keep }: KeyIssuer,
): Promise<IssuedKey> {
  const { id, secret } = mintKey(randomBytes(keyEntropyBytes));
  const key: ApiKey = {
    id,
    name,
    createdAt: clock.now(),
    limits,
    hasBalance: balanceNanos !== undefined,
    compatibility,
  };
  await keep(key, secret, balanceNanos ?? null);
  return { key, secret };
}

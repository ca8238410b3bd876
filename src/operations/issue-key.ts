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
  readonly keep: (key: ApiKey, secret: string) => Promise<void>;
}

/** Makes a key, keeps it, and returns it with its secret. */
export async function issueKey(
  name: string,
  { compatibility = {}, ...limits }: KeySettings,
  { clock, randomBytes, keep }: KeyIssuer,
): Promise<IssuedKey> {
  const { id, secret } = mintKey(randomBytes(keyEntropyBytes));
  const key: ApiKey = { id, name, createdAt: clock.now(), limits, compatibility };
  await keep(key, secret);
  return { key, secret };
}

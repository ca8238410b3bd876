import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Refusal } from '../shared/errors.ts';
import { isUsable, keyPattern } from '../domain/api-key.ts';
import type { ApiKey } from '../domain/api-key.ts';
import type { Clock, KeyDirectory, ReportFault } from '../domain/ports.ts';
import { storageUnavailable } from '../domain/storage-refusal.ts';
import type { Store } from './store.ts';

/** How many keys are remembered. */
const maxCachedKeys = 10_000;

/** How long a key is remembered before the store is asked again, in milliseconds. */
const cacheMs = 10_000;

/** Finds usable keys in a cache by the text presented, and in the store by its hash. Wrong keys are not cached. */
export function createKeyDirectory(
  store: Pick<Store, 'findKeyByHash'>,
  clock: Clock,
  onFault: ReportFault,
): KeyDirectory & { forgetAll(): void } {
  const cache = new LRUCache<string, ApiKey>({ max: maxCachedKeys, ttl: cacheMs });
  return {
    find(presented) {
      const cached = cache.get(presented);
      if (cached !== undefined) return isUsable(cached, clock.now()) ? cached : null;
      return keyPattern.test(presented) ? lookUp(presented) : null;
    },
    forgetAll: () => cache.clear(),
  };

  async function lookUp(presented: string): Promise<ApiKey | null | Refusal> {
    try {
      const key = await store.findKeyByHash(hashKey(presented));
      if (key === null || !isUsable(key, clock.now())) return null;
      cache.set(presented, key);
      return key;
    } catch (error) {
      onFault('keys could not be read', error);
      return storageUnavailable();
    }
  }
}

/** What is stored of a key: SHA-256 suffices for a secret of 256 random bits. */
export function hashKey(presented: string): string {
  return createHash('sha256').update(presented).digest('hex');
}

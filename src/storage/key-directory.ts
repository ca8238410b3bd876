import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { isUsable, isWellFormed } from '../domain/api-key.ts';
import type { ApiKey } from '../domain/api-key.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { KeyLookUp } from '../domain/ports/key-store.ts';
import type { KeyDirectory } from '../domain/ports/keys.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { storageUnavailable } from '../domain/storage-refusal.ts';
import { sumFaults } from '../domain/summed-fault.ts';

/** How many keys the cache holds. */
const maxCachedKeys = 10_000;

/** How long a cached key is used before the store is asked again, in milliseconds. */
const cacheMs = 10_000;

/** How many keys are remembered as valid before, beyond that time. */
const maxKnownKeys = 100_000;

/** How many look-ups of keys that were never seen valid run at once: a flood of them must not fill the database's queue. */
const maxUnknownLookUps = 64;

/** The retry-after of a request whose key was not looked up, in milliseconds. */
const retryMs = 1_000;

/** What the directory reports to. */
export interface DirectoryReports {
  readonly onFault: ReportFault;
  /** Called for a key that was not looked up, because too many unknown keys were. */
  readonly onShed: () => void;
}

/**
 * Finds usable keys in a cache, and in the store by the hash of the text presented, which itself is not kept. Look-ups of
 * keys that this process has not seen valid are bounded apart from all others, so that a flood of guesses locks no paying
 * client out. Wrong keys are not cached, so that guesses can't fill the cache.
 */
export function createKeyDirectory(
  store: KeyLookUp,
  clock: Clock,
  { onFault, onShed }: DirectoryReports,
): KeyDirectory & { forgetAll(): void } {
  const cache = new LRUCache<string, ApiKey>({ max: maxCachedKeys, ttl: cacheMs });
  const known = new LRUCache<string, true>({ max: maxKnownKeys });
  /** The look-ups under way, by hash: identical ones are shared. */
  const underWay = new Map<string, Promise<ApiKey | null | Refusal>>();
  const readFailed = sumFaults('keys could not be read', onFault, clock);
  let unknownLookUps = 0;
  /** Counts the calls of `forgetAll`: a key that was read before the last call may be out of date. */
  let generation = 0;

  return {
    async find(presented) {
      if (!isWellFormed(presented)) return null;
      const hash = hashKey(presented);
      const cached = cache.get(hash);
      if (cached !== undefined) return isUsable(cached, clock.now()) ? cached : null;
      return underWay.get(hash) ?? startLookUp(hash);
    },
    forgetAll() {
      generation++;
      cache.clear();
      // A request after a revocation must not join a look-up from before it.
      underWay.clear();
    },
  };

  function startLookUp(hash: string): Promise<ApiKey | null | Refusal> | Refusal {
    const isUnknown = !known.has(hash);
    if (isUnknown && unknownLookUps >= maxUnknownLookUps) {
      onShed();
      return tooManyLookUps();
    }
    if (isUnknown) unknownLookUps++;
    const found = lookUp(hash).finally(() => {
      if (isUnknown) unknownLookUps--;
      if (underWay.get(hash) === found) underWay.delete(hash);
    });
    underWay.set(hash, found);
    return found;
  }

  async function lookUp(hash: string): Promise<ApiKey | null | Refusal> {
    try {
      const startedIn = generation;
      let key = await store.findKeyByHash(hash);
      // The key may have been read before a revocation: reads do not queue behind writes.
      const isOutdated = generation !== startedIn;
      if (isOutdated) key = await store.findKeyByHash(hash);
      if (key === null || !isUsable(key, clock.now())) {
        known.delete(hash);
        return null;
      }
      known.set(hash, true);
      if (!isOutdated) cache.set(hash, key);
      return key;
    } catch (error) {
      readFailed(error);
      return storageUnavailable();
    }
  }
}

function tooManyLookUps(): Refusal {
  return refuse('overloaded', 'Too many unknown API keys are being checked right now. Try again shortly.', {
    retryAfterMs: retryMs,
  });
}

/** The hash of a secret that is stored: SHA-256 suffices for a secret of 256 random bits. */
export function hashKey(presented: string): string {
  return createHash('sha256').update(presented).digest('hex');
}

import { TimeLimit } from '../domain/time-limit.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { KeyLookUp } from '../domain/ports/key-store.ts';
import { StorageError } from '../domain/storage-refusal.ts';

/** How long a request waits for the look-up of its key before it is refused, in milliseconds. */
const lookUpLimitMs = 5_000;

/**
 * Bounds the look-ups of keys in a database behind a network: while it does not answer, and reads of changes confirm no
 * cached key, every request would wait until its connection is given up.
 */
export function boundLookUps(store: KeyLookUp, clock: Clock): KeyLookUp {
  const limit = new TimeLimit(lookUpLimitMs, clock, tooSlow);
  return {
    findKeyByHash: (hash) => limit.bound(() => store.findKeyByHash(hash)),
    findKeyById: (id) => limit.bound(() => store.findKeyById(id)),
  };
}

function tooSlow(): StorageError {
  return new StorageError('the database takes too long to find a key', 'slow');
}

import { frequencyWindowMs } from '../../../domain/limits/limits.ts';
import { defineFunction, withoutFlush } from '../database-function.ts';
import { advanceQueue, declareKey, lockKey, makeKey, saveKey, serveQueue } from './key-rows.ts';
import { leaveQueue, releaseSlot, restoreSlots, takeEndedWaits, takeSlot } from './slot-functions.ts';

// The steps that search for keys, and change what they find. They lock some keys at a time, in the order of the keys.

/**
 * For how many keys the slots and waits of lost processes are freed at once: as long as the step takes, other steps of
 * these keys wait.
 */
const maxFreedKeys = 50;

/** In how many queues limits are changed at once. */
const maxChangedQueues = 500;

/**
 * Locks the row of a key in the loop of a search, or goes on with the next key where another session has it: a search that
 * waited for it would reach none of the others. Every key that is searched for has its row, so none is missed for lack of it.
 */
const passOverLocked = (key: string): string => `
  PERFORM FROM key_limits WHERE key_id = ${key} FOR UPDATE SKIP LOCKED;
  CONTINUE WHEN NOT FOUND;`;

/** The limits in force of a request that waits, for `followLimits`. */
const limitsInForce = `coalesce(api_keys.concurrency, CASE WHEN owner = $1 THEN $2 ELSE place.concurrency END),
  coalesce(api_keys.requests_per_minute, CASE WHEN owner = $1 THEN $3 ELSE place.requests_per_minute END)`;

/** The slots in force of the group for which a request waits, for `followLimits`; null where it waits for one of its key. */
const slotsOfGroup = `CAST(CAST($4 AS JSON) ->> key_id AS BIGINT)`;

/** That there is no lease of the owner of a row. One that is over counts until it is ended, as it does for records. */
const isLost = 'NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = owner)';

/**
 * Gives requests that wait the stored limits of their keys, and serves those for which there is a slot then. Where a key
 * has none, the requests of owner `$1` get the default of `$2` slots and `$3` starts. `$4` has the slots of groups by their
 * ids, which the requests of that owner get that wait for one. Returns the number of changed queues. Keys are locked in their
 * order; those that are locked by others are left to the next search.
 */
export const followLimits = defineFunction({
  name: 'follow_limits',
  types: ['text', 'bigint', 'bigint', 'text'],
  returns: 'bigint',
  body: `
    ${declareKey}
      changed_key TEXT;
      count BIGINT := 0;
    BEGIN
      ${withoutFlush}
      FOR changed_key IN
        SELECT key_id FROM waiting_requests AS place JOIN api_keys ON api_keys.id = key_id
        WHERE (place.concurrency, place.requests_per_minute) <> (${limitsInForce})
        UNION SELECT key_id FROM waiting_requests AS place
        WHERE owner = $1 AND concurrency <> ${slotsOfGroup}
        ORDER BY key_id
      LOOP
        EXIT WHEN count = ${maxChangedQueues};
        ${passOverLocked('changed_key')}
        ${lockKey('changed_key')}
        UPDATE waiting_requests AS place SET (concurrency, requests_per_minute) = ROW(${limitsInForce})
        FROM api_keys WHERE place.key_id = changed_key AND api_keys.id = changed_key;
        UPDATE waiting_requests SET concurrency = ${slotsOfGroup}
        WHERE key_id = changed_key AND owner = $1 AND ${slotsOfGroup} IS NOT NULL;
        ${advanceQueue}
        ${saveKey}
        count := count + 1;
      END LOOP;
      RETURN count;
    END`,
});

/**
 * Frees the slots and places of owners without a lease, of some keys; returns how many there were, and the number of keys
 * that were passed over since they are locked by others. Keys are locked in their order.
 */
export const freeLost = defineFunction({
  name: 'free_lost',
  types: [],
  returns: 'TABLE (freed BIGINT, passed_over BIGINT)',
  body: `
    ${declareKey}
      lost RECORD;
      gone BIGINT;
      keys BIGINT := 0;
    BEGIN
      -- What a crash of the database brings back is found by the next search.
      ${withoutFlush}
      freed := 0;
      passed_over := 0;
      FOR lost IN
        SELECT key_id, array_agg(request_id) AS request_ids FROM (
          SELECT key_id, request_id FROM slots WHERE ${isLost}
          UNION ALL SELECT key_id, request_id FROM waiting_requests WHERE ${isLost}
        ) AS places GROUP BY key_id ORDER BY key_id
      LOOP
        EXIT WHEN keys = ${maxFreedKeys};
        passed_over := passed_over + 1;
        ${passOverLocked('lost.key_id')}
        passed_over := passed_over - 1;
        keys := keys + 1;
        ${lockKey('lost.key_id')}
        -- By request: slots have no index by key. One that waited before the lock may have a slot by now.
        DELETE FROM slots WHERE request_id = ANY(lost.request_ids) AND key_id = lost.key_id AND ${isLost};
        GET DIAGNOSTICS gone = ROW_COUNT;
        key.running := key.running - gone;
        freed := freed + gone;
        DELETE FROM waiting_requests WHERE key_id = lost.key_id AND ${isLost};
        GET DIAGNOSTICS gone = ROW_COUNT;
        key.waiting := key.waiting - gone;
        freed := freed + gone;
        ${advanceQueue}
        ${saveKey}
      END LOOP;
      -- Behind all keys: a step that has the lock of a key may wait for these rows.
      DELETE FROM ended_waits WHERE ${isLost};
      RETURN NEXT;
    END`,
});

/** Forgets the old starts of keys that have no requests any more, of `$2` keys behind key `$1`; returns the last of those. */
export const forgetIdleStarts = defineFunction({
  name: 'forget_idle_starts',
  types: ['text', 'bigint'],
  returns: 'text',
  body: `
    ${declareKey}
      idle RECORD;
      last TEXT;
    BEGIN
      ${withoutFlush}
      FOR idle IN
        SELECT key_id, starts > 0 AND last_start_at <= now_ms() - ${frequencyWindowMs} AS is_old FROM key_limits
        WHERE key_id > $1 ORDER BY key_id LIMIT $2
      LOOP
        last := idle.key_id;
        IF idle.is_old THEN
          ${passOverLocked('idle.key_id')}
          ${lockKey('idle.key_id')}
          ${saveKey}
        END IF;
      END LOOP;
      RETURN last;
    END`,
});

/** Every function, each behind those that it calls. */
export const slotFunctions = [
  makeKey,
  serveQueue,
  takeSlot,
  takeEndedWaits,
  releaseSlot,
  restoreSlots,
  leaveQueue,
  followLimits,
  freeLost,
  forgetIdleStarts,
];

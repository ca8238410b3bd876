import { frequencyWindowMs } from '../../../domain/limits.ts';
import { defineFunction, searchByIndex, withoutFlush } from '../database-function.ts';
import { lockKey, saveKey, serveLine } from './key-functions.ts';

// The steps that search for keys, and change what they find. They lock some keys at a time, in the order of the keys.

/** For how many keys the slots and places of lost processes are freed at once. */
const maxFreedKeys = 500;

/** In how many lines limits are changed at once. */
const maxChangedLines = 500;

/** The limits in force of a request that waits, for `followLimits`. */
const limitsInForce = `coalesce(api_keys.concurrency, CASE WHEN owner = $1 THEN $2 ELSE place.concurrency END),
  coalesce(api_keys.requests_per_minute, CASE WHEN owner = $1 THEN $3 ELSE place.requests_per_minute END)`;

/** That there is no lease of the owner of a row. One that is over counts until it is ended, as it does for records. */
const isLost = 'NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = owner)';

/**
 * Gives requests that wait the stored limits of their keys, and serves those for which there is a slot then. Where a key
 * has none, the requests of owner `$1` get the default of `$2` slots and `$3` starts. Returns the number of changed lines.
 * Keys are locked in their order.
 */
export const followLimits = defineFunction({
  name: 'follow_limits',
  types: ['text', 'bigint', 'bigint'],
  returns: 'bigint',
  settings: searchByIndex,
  body: `
    DECLARE
      changed_key TEXT;
      key key_limits;
      count BIGINT := 0;
    BEGIN
      ${withoutFlush}
      FOR changed_key IN
        SELECT DISTINCT key_id FROM waiting_requests AS place JOIN api_keys ON api_keys.id = key_id
        WHERE (place.concurrency, place.requests_per_minute) <> (${limitsInForce})
        ORDER BY key_id LIMIT ${maxChangedLines}
      LOOP
        key := ${lockKey.called}(changed_key);
        UPDATE waiting_requests AS place SET (concurrency, requests_per_minute) = ROW(${limitsInForce})
        FROM api_keys WHERE place.key_id = changed_key AND api_keys.id = changed_key;
        key := ${serveLine.called}(key);
        PERFORM ${saveKey.called}(key);
        count := count + 1;
      END LOOP;
      RETURN count;
    END`,
});

/** Frees the slots and places of owners without a lease; returns how many there were. Keys are locked in their order. */
export const freeLost = defineFunction({
  name: 'free_lost',
  types: [],
  returns: 'bigint',
  body: `
    DECLARE
      lost_key TEXT;
      key key_limits;
      freed BIGINT;
      count BIGINT := 0;
    BEGIN
      FOR lost_key IN
        SELECT key_id FROM slots WHERE ${isLost} UNION SELECT key_id FROM waiting_requests WHERE ${isLost}
        ORDER BY key_id LIMIT ${maxFreedKeys}
      LOOP
        key := ${lockKey.called}(lost_key);
        DELETE FROM slots WHERE key_id = lost_key AND ${isLost};
        GET DIAGNOSTICS freed = ROW_COUNT;
        key.running := key.running - freed;
        count := count + freed;
        DELETE FROM waiting_requests WHERE key_id = lost_key AND ${isLost};
        GET DIAGNOSTICS freed = ROW_COUNT;
        key.waiting := key.waiting - freed;
        count := count + freed;
        key := ${serveLine.called}(key);
        PERFORM ${saveKey.called}(key);
      END LOOP;
      -- Behind the locks of keys: the other steps lock a key before the ends of its waits.
      DELETE FROM ended_waits WHERE ${isLost};
      RETURN count;
    END`,
});

/** Forgets the old starts of keys that have no requests any more, of `$2` keys behind key `$1`; returns the last of those. */
export const forgetIdleStarts = defineFunction({
  name: 'forget_idle_starts',
  types: ['text', 'bigint'],
  returns: 'text',
  body: `
    DECLARE
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
          PERFORM ${saveKey.called}(${lockKey.called}(idle.key_id));
        END IF;
      END LOOP;
      RETURN last;
    END`,
});

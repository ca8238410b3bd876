import { frequencyWindowMs, maxWaitingRequests } from '../../../domain/limits.ts';
import { holdsLease } from '../../leases/lease-statements.ts';
import { defineFunction, searchByIndex, withoutFlush } from '../database-function.ts';
import { describeDecision, grantSlot, lockKey, saveKey, serveLine } from './key-functions.ts';

/** For how many keys the slots and places of lost processes are freed at once. */
const maxFreedKeys = 500;

/** That there is no lease of the owner of a row. */
const isLost = 'NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = owner)';

/**
 * Takes a slot: of key `$1`, for request `$2` of owner `$3`, with a limit of `$4` slots and of `$5` starts; `$6` is 1 if
 * it may wait. Where requests wait none is served before them.
 */
export const takeSlot = defineFunction({
  name: 'take_slot',
  types: ['text', 'text', 'text', 'bigint', 'bigint', 'bigint'],
  returns: 'limit_decision',
  settings: searchByIndex,
  body: `
    DECLARE
      key key_limits;
      verdict TEXT;
    BEGIN
      ${withoutFlush}
      key := ${lockKey.called}($1);
      -- Behind the lock, for which it may have waited until the lease was over, ended, and its slots freed.
      IF NOT ${holdsLease('$3')} THEN
        RETURN ROW('no lease', 0, 0, 0)::limit_decision;
      END IF;
      IF key.waiting = 0 AND key.running < $4 AND key.starts < $5 THEN
        key := ${grantSlot.called}(key, $2, $3);
        verdict := 'granted';
      ELSIF key.waiting = 0 AND key.running < $4 THEN
        verdict := 'rate';
      ELSIF $6 = 0 OR key.waiting >= ${maxWaitingRequests} THEN
        verdict := 'concurrency';
      ELSE
        key.last_ticket := key.last_ticket + 1;
        key.waiting := key.waiting + 1;
        INSERT INTO waiting_requests (key_id, ticket, request_id, owner, concurrency, requests_per_minute)
        VALUES ($1, key.last_ticket, $2, $3, $4, $5);
        verdict := 'waiting';
      END IF;
      PERFORM ${saveKey.called}(key);
      RETURN ${describeDecision.called}(verdict, key, $5);
    END`,
});

/** Takes the waits of owner `$1` that ended, in their order. */
export const takeEndedWaits = defineFunction({
  name: 'take_ended_waits',
  types: ['text'],
  returns: 'SETOF ended_waits',
  settings: searchByIndex,
  body: `
    BEGIN
      ${withoutFlush}
      RETURN QUERY WITH taken AS (DELETE FROM ended_waits WHERE owner = $1 RETURNING *)
        SELECT * FROM taken ORDER BY number;
    END`,
});

/** Gives back what request `$2` of key `$1` has; returns the waits of owner `$3` that ended. */
export const releaseSlot = defineFunction({
  name: 'release_slot',
  types: ['text', 'text', 'text'],
  returns: 'SETOF ended_waits',
  settings: searchByIndex,
  body: `
    DECLARE
      key key_limits;
      freed BIGINT;
      had_line BOOLEAN;
    BEGIN
      ${withoutFlush}
      key := ${lockKey.called}($1);
      had_line := key.waiting > 0;
      DELETE FROM slots WHERE request_id = $2 AND key_id = $1;
      GET DIAGNOSTICS freed = ROW_COUNT;
      key.running := key.running - freed;
      IF freed = 0 THEN
        DELETE FROM waiting_requests WHERE request_id = $2 AND key_id = $1;
        GET DIAGNOSTICS freed = ROW_COUNT;
        key.waiting := key.waiting - freed;
        DELETE FROM ended_waits WHERE request_id = $2;
      END IF;
      key := ${serveLine.called}(key);
      PERFORM ${saveKey.called}(key);
      IF had_line THEN
        RETURN QUERY SELECT * FROM ${takeEndedWaits.called}($3);
      END IF;
    END`,
});

/** Gives up the wait of request `$2` of key `$1`, whose limit of starts is `$3`. */
export const leaveLine = defineFunction({
  name: 'leave_line',
  types: ['text', 'text', 'bigint'],
  returns: 'limit_decision',
  settings: searchByIndex,
  body: `
    DECLARE
      key key_limits;
      ended ended_waits;
      left_line BIGINT;
    BEGIN
      ${withoutFlush}
      key := ${lockKey.called}($1);
      DELETE FROM waiting_requests WHERE request_id = $2 AND key_id = $1;
      GET DIAGNOSTICS left_line = ROW_COUNT;
      key.waiting := key.waiting - left_line;
      key := ${serveLine.called}(key);
      PERFORM ${saveKey.called}(key);
      DELETE FROM ended_waits WHERE request_id = $2 RETURNING * INTO ended;
      IF ended.verdict IS NOT NULL THEN
        RETURN ROW(ended.verdict, ended.in_flight, ended.remaining_starts, ended.reset_ms)::limit_decision;
      END IF;
      -- The end of the wait was taken before, by a call whose answer was lost.
      IF EXISTS (SELECT 1 FROM slots WHERE request_id = $2 AND key_id = $1) THEN
        RETURN ${describeDecision.called}('granted', key, $3);
      END IF;
      RETURN ${describeDecision.called}('concurrency', key, $3);
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

/** Every function, each behind those that it calls. */
export const slotFunctions = [
  lockKey,
  saveKey,
  grantSlot,
  describeDecision,
  serveLine,
  takeSlot,
  takeEndedWaits,
  releaseSlot,
  leaveLine,
  freeLost,
  forgetIdleStarts,
];

import { maxWaitingRequests } from '../../../domain/limits/limits.ts';
import { holdsLease } from '../../leases.ts';
import { defineFunction, withoutFlush } from '../database-function.ts';
import { advanceQueue, declareKey, describeDecision, grantSlot, lockKey, saveKey } from './key-rows.ts';

/** What becomes of a request that asks for a slot of a locked key with a limit of slots and of starts, and does not wait. */
export const verdictOn = (slots: string, starts: string): string =>
  `CASE WHEN key.waiting > 0 OR key.running >= ${slots} THEN 'concurrency' WHEN key.starts >= ${starts} THEN 'rate' ELSE 'granted' END`;

/**
 * Takes a slot: of key `$1`, for request `$2` of owner `$3`, with a limit of `$4` slots and of `$5` starts; `$6` is 1 if
 * it may wait. Where requests wait none is served before them.
 */
export const takeSlot = defineFunction({
  name: 'take_slot',
  types: ['text', 'text', 'text', 'bigint', 'bigint', 'bigint'],
  returns: 'limit_decision',
  body: `
    ${declareKey}
      verdict TEXT;
    BEGIN
      ${withoutFlush}
      ${lockKey('$1')}
      -- Behind the lock, for which it may have waited until the lease was over, ended, and its slots freed.
      IF NOT ${holdsLease('$3')} THEN
        -- The starts that the lock forgot are deleted: a count that still has them would never be corrected.
        ${saveKey}
        RETURN ROW('no lease', 0, 0, 0)::limit_decision;
      END IF;
      verdict := ${verdictOn('$4', '$5')};
      IF verdict = 'granted' THEN
        ${grantSlot('$2', '$3')}
      ELSIF verdict = 'concurrency' AND $6 = 1 AND key.waiting < ${maxWaitingRequests} THEN
        key.last_ticket := key.last_ticket + 1;
        key.waiting := key.waiting + 1;
        INSERT INTO waiting_requests (key_id, ticket, request_id, owner, concurrency, requests_per_minute)
        VALUES ($1, key.last_ticket, $2, $3, $4, $5);
        verdict := 'waiting';
      END IF;
      ${saveKey}
      ${describeDecision('verdict', '$5')}
      RETURN decision;
    END`,
});

/** Takes the waits of owner `$1` that ended, in their order. */
export const takeEndedWaits = defineFunction({
  name: 'take_ended_waits',
  types: ['text'],
  returns: 'SETOF ended_waits',
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
  body: `
    ${declareKey}
      freed BIGINT;
      had_queue BOOLEAN;
    BEGIN
      ${withoutFlush}
      ${lockKey('$1')}
      had_queue := key.waiting > 0;
      DELETE FROM slots WHERE request_id = $2 AND key_id = $1;
      GET DIAGNOSTICS freed = ROW_COUNT;
      key.running := key.running - freed;
      IF freed = 0 THEN
        DELETE FROM waiting_requests WHERE request_id = $2 AND key_id = $1;
        GET DIAGNOSTICS freed = ROW_COUNT;
        key.waiting := key.waiting - freed;
        DELETE FROM ended_waits WHERE request_id = $2;
      END IF;
      ${advanceQueue}
      ${saveKey}
      IF had_queue THEN
        RETURN QUERY SELECT * FROM ${takeEndedWaits.called}($3);
      END IF;
    END`,
});

/**
 * Gives the requests of the JSON array `$3`, which run, the slots of key `$1` that the database has forgotten, under the lease
 * of owner `$2`, whatever the limits; returns how many it had forgotten.
 */
export const restoreSlots = defineFunction({
  name: 'restore_slots',
  types: ['text', 'text', 'text'],
  returns: 'bigint',
  body: `
    ${declareKey}
      restored BIGINT := 0;
    BEGIN
      ${withoutFlush}
      ${lockKey('$1')}
      IF ${holdsLease('$2')} THEN
        INSERT INTO slots (request_id, key_id, owner)
        SELECT request_id, $1, $2 FROM json_array_elements_text(CAST($3 AS JSON)) AS request_id
        ON CONFLICT (request_id) DO NOTHING;
        GET DIAGNOSTICS restored = ROW_COUNT;
        key.running := key.running + restored;
      END IF;
      ${saveKey}
      RETURN restored;
    END`,
});

/** Gives up the wait of request `$2` of key `$1`, which came with a limit of `$3` starts: it may have another one by now. */
export const leaveQueue = defineFunction({
  name: 'leave_queue',
  types: ['text', 'text', 'bigint'],
  returns: 'limit_decision',
  body: `
    ${declareKey}
      ended ended_waits;
      left_queue BIGINT;
      starts_in_force BIGINT;
    BEGIN
      ${withoutFlush}
      ${lockKey('$1')}
      DELETE FROM waiting_requests WHERE request_id = $2 AND key_id = $1
      RETURNING requests_per_minute INTO starts_in_force;
      GET DIAGNOSTICS left_queue = ROW_COUNT;
      key.waiting := key.waiting - left_queue;
      ${advanceQueue}
      ${saveKey}
      DELETE FROM ended_waits WHERE request_id = $2 RETURNING * INTO ended;
      IF ended.verdict IS NOT NULL THEN
        RETURN ROW(ended.verdict, ended.in_flight, ended.remaining_starts, ended.reset_ms)::limit_decision;
      END IF;
      -- The end of the wait was taken before, by a call whose answer was lost.
      IF EXISTS (SELECT 1 FROM slots WHERE request_id = $2 AND key_id = $1) THEN
        ${describeDecision(`'granted'`, '$3')}
        RETURN decision;
      END IF;
      starts_in_force := coalesce(starts_in_force, $3);
      ${describeDecision(`'concurrency'`, 'starts_in_force')}
      RETURN decision;
    END`,
});

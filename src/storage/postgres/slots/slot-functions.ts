import { frequencyWindowMs, maxWaitingRequests } from '../../../domain/limits/limits.ts';
import { holdsLease } from '../../leases.ts';
import { defineFunction, searchByIndex, withoutFlush } from '../database-function.ts';

// What the steps on slots consist of. The row of a key is locked first, by `lockKey`; it counts the key's other rows, and
// is passed on from function to function until `saveKey` writes it.

/**
 * Locks the row of a key, which is made for a key that has none, and forgets the starts that are a whole window old. Where
 * the clock of the database was set back, the starts are as old as they were when the last of them was made: otherwise the
 * key would be refused for as long as the clock went back.
 */
export const lockKey = defineFunction({
  name: 'lock_key',
  types: ['text'],
  returns: 'key_limits',
  body: `
    DECLARE
      key key_limits;
      now_at BIGINT;
      forgotten BIGINT;
    BEGIN
      SELECT * INTO key FROM key_limits WHERE key_id = $1 FOR UPDATE;
      IF NOT FOUND THEN
        INSERT INTO key_limits (key_id) VALUES ($1) ON CONFLICT (key_id) DO NOTHING;
        SELECT * INTO key FROM key_limits WHERE key_id = $1 FOR UPDATE;
      END IF;
      IF key.starts = 0 THEN
        RETURN key;
      END IF;
      now_at := now_ms();
      IF now_at < key.last_start_at THEN
        UPDATE starts SET at = at - (key.last_start_at - now_at) WHERE key_id = $1;
        key.last_start_at := now_at;
      END IF;
      DELETE FROM starts WHERE key_id = $1 AND at <= now_at - ${frequencyWindowMs};
      GET DIAGNOSTICS forgotten = ROW_COUNT;
      key.starts := key.starts - forgotten;
      RETURN key;
    END`,
});

/** Writes the row of a locked key, unless it is as it was: a refusal writes nothing. */
export const saveKey = defineFunction({
  name: 'save_key',
  types: ['key_limits'],
  returns: 'void',
  body: `
    BEGIN
      UPDATE key_limits SET running = $1.running, waiting = $1.waiting, starts = $1.starts,
        last_start_at = $1.last_start_at, last_ticket = $1.last_ticket
      WHERE key_id = $1.key_id AND (running, waiting, starts, last_start_at, last_ticket) IS DISTINCT FROM
        ($1.running, $1.waiting, $1.starts, $1.last_start_at, $1.last_ticket);
    END`,
});

/** Gives a slot of a locked key to a request of an owner, and counts a start. */
export const grantSlot = defineFunction({
  name: 'grant_slot',
  types: ['key_limits', 'text', 'text'],
  returns: 'key_limits',
  body: `
    DECLARE
      key key_limits := $1;
    BEGIN
      key.last_start_at := now_ms();
      INSERT INTO slots (request_id, key_id, owner) VALUES ($2, key.key_id, $3);
      INSERT INTO starts (key_id, at) VALUES (key.key_id, key.last_start_at);
      key.running := key.running + 1;
      key.starts := key.starts + 1;
      RETURN key;
    END`,
});

/** What a decision says of a locked key with a limit of starts. */
export const describeDecision = defineFunction({
  name: 'describe_decision',
  types: ['text', 'key_limits', 'bigint'],
  returns: 'limit_decision',
  body: `
    DECLARE
      decision limit_decision;
      next_expiry BIGINT;
    BEGIN
      IF $2.starts > 0 THEN
        -- The start that must be forgotten before another one fits.
        SELECT at + ${frequencyWindowMs} INTO next_expiry FROM starts WHERE key_id = $2.key_id
        ORDER BY at OFFSET greatest(0, $2.starts - $3) LIMIT 1;
      END IF;
      decision.verdict := $1;
      decision.in_flight := $2.running;
      decision.remaining_starts := greatest(0, $3 - $2.starts);
      decision.reset_ms := coalesce(least(${frequencyWindowMs}, greatest(0, next_expiry - now_ms())), 0);
      RETURN decision;
    END`,
});

/** Ends the waits at the head of the queue of a locked key: as many as there are slots for, and those without a start left. */
export const advanceQueue = defineFunction({
  name: 'advance_queue',
  types: ['key_limits'],
  returns: 'key_limits',
  body: `
    DECLARE
      key key_limits := $1;
      head waiting_requests;
      decision limit_decision;
    BEGIN
      WHILE key.waiting > 0 LOOP
        SELECT * INTO head FROM waiting_requests WHERE key_id = key.key_id ORDER BY ticket LIMIT 1;
        EXIT WHEN NOT FOUND OR key.running >= head.concurrency;
        DELETE FROM waiting_requests WHERE key_id = key.key_id AND ticket = head.ticket;
        key.waiting := key.waiting - 1;
        IF key.starts >= head.requests_per_minute THEN
          decision := ${describeDecision.called}('rate', key, head.requests_per_minute);
        ELSE
          key := ${grantSlot.called}(key, head.request_id, head.owner);
          decision := ${describeDecision.called}('granted', key, head.requests_per_minute);
        END IF;
        INSERT INTO ended_waits (request_id, owner, verdict, in_flight, remaining_starts, reset_ms)
        VALUES (head.request_id, head.owner, decision.verdict, decision.in_flight, decision.remaining_starts,
          decision.reset_ms);
      END LOOP;
      RETURN key;
    END`,
});

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
        -- The starts that the lock forgot are deleted: a count that still has them would never be corrected.
        PERFORM ${saveKey.called}(key);
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
      had_queue BOOLEAN;
    BEGIN
      ${withoutFlush}
      key := ${lockKey.called}($1);
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
      key := ${advanceQueue.called}(key);
      PERFORM ${saveKey.called}(key);
      IF had_queue THEN
        RETURN QUERY SELECT * FROM ${takeEndedWaits.called}($3);
      END IF;
    END`,
});

/** Gives up the wait of request `$2` of key `$1`, which came with a limit of `$3` starts: it may have another one by now. */
export const leaveQueue = defineFunction({
  name: 'leave_queue',
  types: ['text', 'text', 'bigint'],
  returns: 'limit_decision',
  settings: searchByIndex,
  body: `
    DECLARE
      key key_limits;
      ended ended_waits;
      left_queue BIGINT;
      starts_in_force BIGINT;
    BEGIN
      ${withoutFlush}
      key := ${lockKey.called}($1);
      DELETE FROM waiting_requests WHERE request_id = $2 AND key_id = $1
      RETURNING requests_per_minute INTO starts_in_force;
      GET DIAGNOSTICS left_queue = ROW_COUNT;
      key.waiting := key.waiting - left_queue;
      key := ${advanceQueue.called}(key);
      PERFORM ${saveKey.called}(key);
      DELETE FROM ended_waits WHERE request_id = $2 RETURNING * INTO ended;
      IF ended.verdict IS NOT NULL THEN
        RETURN ROW(ended.verdict, ended.in_flight, ended.remaining_starts, ended.reset_ms)::limit_decision;
      END IF;
      -- The end of the wait was taken before, by a call whose answer was lost.
      IF EXISTS (SELECT 1 FROM slots WHERE request_id = $2 AND key_id = $1) THEN
        RETURN ${describeDecision.called}('granted', key, $3);
      END IF;
      RETURN ${describeDecision.called}('concurrency', key, coalesce(starts_in_force, $3));
    END`,
});

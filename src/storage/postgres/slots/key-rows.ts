import { frequencyWindowMs } from '../../../domain/limits/limits.ts';
import { hasNoLease } from '../../leases.ts';
import { defineFunction } from '../database-function.ts';

// What the steps on slots consist of. The row of a key is locked first, by `lockKey`; it counts the key's other rows, and
// is passed on from function to function until `saveKey` writes it.

/**
 * Counts what runs of a key, and what it started in the last window, by its records: they outlive a crash of the server, which
 * empties the tables of slots. Those of a new key are none, and so are those of a group. A lease that is over counts until it
 * is ended: after an outage all of them are over. `$1` is the row of the key, which was just made.
 */
export const recountKey = defineFunction({
  name: 'recount_key',
  types: ['key_limits'],
  returns: 'key_limits',
  body: `
    DECLARE
      key key_limits := $1;
      now_at BIGINT := now_ms();
      of_key INTEGER;
    BEGIN
      SELECT number INTO of_key FROM accounts WHERE key_id = key.key_id;
      IF NOT FOUND THEN
        RETURN key;
      END IF;
      INSERT INTO slots (request_id, key_id, owner)
      SELECT 'req_' || lpad(to_hex(created_at), 12, '0') || encode(tail, 'hex'), key.key_id, owner FROM open_rows
      WHERE account = of_key AND NOT ${hasNoLease}
      ON CONFLICT (request_id) DO NOTHING;
      GET DIAGNOSTICS key.running = ROW_COUNT;
      INSERT INTO starts (key_id, at)
      SELECT key.key_id, least(created_at, now_at) FROM (
        SELECT created_at, account FROM record_rows UNION ALL SELECT created_at, account FROM open_rows
      ) AS rows WHERE account = of_key AND created_at > now_at - ${frequencyWindowMs};
      GET DIAGNOSTICS key.starts = ROW_COUNT;
      key.last_start_at := coalesce((SELECT max(at) FROM starts WHERE key_id = key.key_id), 0);
      RETURN key;
    END`,
});

/**
 * Forgets the starts of a locked key that are a whole window old. Where the clock of the database was set back, the starts are as
 * old as they were when the last of them was made: otherwise the key would be refused for as long as the clock went back.
 */
export const forgetStarts = defineFunction({
  name: 'forget_starts',
  types: ['key_limits'],
  returns: 'key_limits',
  body: `
    DECLARE
      key key_limits := $1;
      now_at BIGINT := now_ms();
      forgotten BIGINT;
    BEGIN
      IF now_at < key.last_start_at THEN
        UPDATE starts SET at = at - (key.last_start_at - now_at) WHERE key_id = key.key_id;
        key.last_start_at := now_at;
      END IF;
      DELETE FROM starts WHERE key_id = key.key_id AND at <= now_at - ${frequencyWindowMs};
      GET DIAGNOSTICS forgotten = ROW_COUNT;
      key.starts := key.starts - forgotten;
      RETURN key;
    END`,
});

/** Locks the row of a key, which is made for a key that has none, and forgets the starts that are a whole window old. */
export const lockKey = defineFunction({
  name: 'lock_key',
  types: ['text'],
  returns: 'key_limits',
  body: `
    DECLARE
      key key_limits;
      made BIGINT;
    BEGIN
      SELECT * INTO key FROM key_limits WHERE key_id = $1 FOR UPDATE;
      IF NOT FOUND THEN
        INSERT INTO key_limits (key_id) VALUES ($1) ON CONFLICT (key_id) DO NOTHING;
        GET DIAGNOSTICS made = ROW_COUNT;
        SELECT * INTO key FROM key_limits WHERE key_id = $1 FOR UPDATE;
        IF made = 1 THEN
          key := ${recountKey.called}(key);
        END IF;
      END IF;
      IF key.starts > 0 THEN
        key := ${forgetStarts.called}(key);
      END IF;
      RETURN key;
    END`,
});

/**
 * Writes the row of a locked key, unless it is as it was: a refusal writes nothing. Returns it: PL/pgSQL evaluates `key :=` by
 * itself, where `PERFORM` would be a statement more.
 */
export const saveKey = defineFunction({
  name: 'save_key',
  types: ['key_limits'],
  returns: 'key_limits',
  body: `
    BEGIN
      UPDATE key_limits SET running = $1.running, waiting = $1.waiting, starts = $1.starts,
        last_start_at = $1.last_start_at, last_ticket = $1.last_ticket
      WHERE key_id = $1.key_id AND (running, waiting, starts, last_start_at, last_ticket) IS DISTINCT FROM
        ($1.running, $1.waiting, $1.starts, $1.last_start_at, $1.last_ticket);
      RETURN $1;
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

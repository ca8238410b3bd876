import { frequencyWindowMs } from '../../../domain/limits/limits.ts';
import { hasNoLease } from '../../leases.ts';
import { defineFunction } from '../database-function.ts';

// What the steps on slots consist of: statements of PL/pgSQL on the row of a key. It is locked first, by `lockKey`; it counts
// the key's other rows, and is written last, by `saveKey`. As a function each would take 4 µs more of a call: only what few calls
// need is one.

/** The variables of these statements. */
export const keyVariables = [
  'key key_limits',
  'decision limit_decision',
  'now_at BIGINT',
  'forgotten BIGINT',
] as const;

/** The same as the beginning of a function. */
export const declareKey = `DECLARE ${keyVariables.map((variable) => `${variable};`).join(' ')}`;

/**
 * Makes the row of key `$1`, and locks it. What runs of the key, and what it started in the last window, is counted by its
 * records: they outlive a crash of the server, which empties the tables of slots. Those of a new key are none, and so are those
 * of a group. A lease that is over counts until it is ended: after an outage all of them are over.
 */
export const makeKey = defineFunction({
  name: 'make_key',
  types: ['text'],
  returns: 'key_limits',
  body: `
    DECLARE
      key key_limits;
      made BIGINT;
      now_at BIGINT;
      of_key INTEGER;
    BEGIN
      INSERT INTO key_limits (key_id) VALUES ($1) ON CONFLICT (key_id) DO NOTHING;
      GET DIAGNOSTICS made = ROW_COUNT;
      SELECT * INTO key FROM key_limits WHERE key_id = $1 FOR UPDATE;
      SELECT number INTO of_key FROM accounts WHERE key_id = $1;
      IF made = 0 OR of_key IS NULL THEN
        RETURN key;
      END IF;
      now_at := now_ms();
      INSERT INTO slots (request_id, key_id, owner)
      SELECT 'req_' || lpad(to_hex(created_at), 12, '0') || encode(tail, 'hex'), $1, owner FROM open_rows
      WHERE account = of_key AND NOT ${hasNoLease}
      ON CONFLICT (request_id) DO NOTHING;
      GET DIAGNOSTICS key.running = ROW_COUNT;
      INSERT INTO starts (key_id, at)
      SELECT $1, least(created_at, now_at) FROM (
        SELECT created_at, account FROM record_rows UNION ALL SELECT created_at, account FROM open_rows
      ) AS rows WHERE account = of_key AND created_at > now_at - ${frequencyWindowMs};
      GET DIAGNOSTICS key.starts = ROW_COUNT;
      key.last_start_at := coalesce((SELECT max(at) FROM starts WHERE key_id = $1), 0);
      RETURN key;
    END`,
});

/**
 * Locks the row of a key, which is made for a key that has none, and forgets the starts that are a whole window old. Where the
 * clock of the database was set back, the starts are as old as they were when the last of them was made: otherwise the key
 * would be refused for as long as the clock went back.
 */
export const lockKey = (keyId: string): string => `
  SELECT * INTO key FROM key_limits WHERE key_id = ${keyId} FOR UPDATE;
  IF NOT FOUND THEN
    key := ${makeKey.called}(${keyId});
  END IF;
  IF key.starts > 0 THEN
    now_at := now_ms();
    IF now_at < key.last_start_at THEN
      UPDATE starts SET at = at - (key.last_start_at - now_at) WHERE key_id = key.key_id;
      key.last_start_at := now_at;
    END IF;
    DELETE FROM starts WHERE key_id = key.key_id AND at <= now_at - ${frequencyWindowMs};
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    key.starts := key.starts - forgotten;
  END IF;`;

/** Writes the row of the locked key, unless it is as it was: a refusal writes nothing. */
export const saveKey = `
  UPDATE key_limits SET running = key.running, waiting = key.waiting, starts = key.starts,
    last_start_at = key.last_start_at, last_ticket = key.last_ticket
  WHERE key_id = key.key_id AND (running, waiting, starts, last_start_at, last_ticket) IS DISTINCT FROM
    (key.running, key.waiting, key.starts, key.last_start_at, key.last_ticket);`;

/** Gives a slot of the locked key to a request of an owner, and counts a start. */
export const grantSlot = (requestId: string, owner: string): string => `
  key.last_start_at := now_ms();
  INSERT INTO slots (request_id, key_id, owner) VALUES (${requestId}, key.key_id, ${owner});
  INSERT INTO starts (key_id, at) VALUES (key.key_id, key.last_start_at);
  key.running := key.running + 1;
  key.starts := key.starts + 1;`;

/** Makes the decision that says what became of a request of the locked key, whose limit is so many starts. */
export const describeDecision = (verdict: string, starts: string): string => `
  decision := ROW(${verdict}, key.running, greatest(0, ${starts} - key.starts), 0);
  IF key.starts > 0 THEN
    -- The start that must be forgotten before another one fits.
    SELECT least(${frequencyWindowMs}, greatest(0, at + ${frequencyWindowMs} - now_ms())) INTO decision.reset_ms FROM starts
    WHERE key_id = key.key_id ORDER BY at OFFSET greatest(0, key.starts - ${starts}) LIMIT 1;
    decision.reset_ms := coalesce(decision.reset_ms, 0);
  END IF;`;

/** Ends the waits at the head of the queue of a locked key: as many as there are slots for, and those without a start left. */
export const serveQueue = defineFunction({
  name: 'serve_queue',
  types: ['key_limits'],
  returns: 'key_limits',
  body: `
    ${declareKey}
      head waiting_requests;
    BEGIN
      key := $1;
      WHILE key.waiting > 0 LOOP
        SELECT * INTO head FROM waiting_requests WHERE key_id = key.key_id ORDER BY ticket LIMIT 1;
        EXIT WHEN NOT FOUND OR key.running >= head.concurrency;
        DELETE FROM waiting_requests WHERE key_id = key.key_id AND ticket = head.ticket;
        key.waiting := key.waiting - 1;
        IF key.starts >= head.requests_per_minute THEN
          ${describeDecision(`'rate'`, 'head.requests_per_minute')}
        ELSE
          ${grantSlot('head.request_id', 'head.owner')}
          ${describeDecision(`'granted'`, 'head.requests_per_minute')}
        END IF;
        INSERT INTO ended_waits (request_id, owner, verdict, in_flight, remaining_starts, reset_ms)
        VALUES (head.request_id, head.owner, decision.verdict, decision.in_flight, decision.remaining_starts,
          decision.reset_ms);
      END LOOP;
      RETURN key;
    END`,
});

/** Serves the queue of the locked key, if requests wait in it. */
export const advanceQueue = `
  IF key.waiting > 0 THEN
    key := ${serveQueue.called}(key);
  END IF;`;

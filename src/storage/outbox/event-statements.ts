import type { NewEvent } from '../../domain/events.ts';
import { placesOf } from '../engine.ts';
import type { Statement } from '../engine.ts';
import { markOf } from './mark-of-key.ts';

/** How many keys one read finds. */
const keysPerRead = 200;

/** How many accounts one read finds, and one unit gives their marks: some milliseconds. */
export const accountsPerRead = 500;

/** Adds an event, unless there is one of its name. */
export function insertEvent({ name, type, subject, data, keptUntilMs = 0 }: NewEvent, id: string): Statement {
  return {
    sql: `INSERT INTO outbox (id, name, type, subject, position, created_at, data, kept_until)
          VALUES (?, ?, ?, ?, 0, now_ms(), ?, ?) ON CONFLICT (name) DO NOTHING RETURNING id`,
    values: [`evt_${id}`, name, type, subject, JSON.stringify(data), keptUntilMs],
  };
}

export const selectSettings: Statement = {
  sql: 'SELECT low_balance, is_applied, budget_levels FROM event_settings WHERE id = 1',
  values: [],
};

/** Writes the settings, which are not applied to the accounts yet. */
export function storeSettings(lowBalanceNanos: number | null): Statement {
  return {
    sql: `INSERT INTO event_settings (id, low_balance, is_applied) VALUES (1, ?, 0)
          ON CONFLICT (id) DO UPDATE SET low_balance = excluded.low_balance, is_applied = 0`,
    values: [lowBalanceNanos],
  };
}

/** Writes whether budgets add events when they reach a level. */
export function storeBudgetLevels(areWanted: boolean): Statement {
  return {
    sql: `INSERT INTO event_settings (id, low_balance, is_applied, budget_levels) VALUES (1, NULL, 1, ?)
          ON CONFLICT (id) DO UPDATE SET budget_levels = excluded.budget_levels`,
    values: [areWanted ? 1 : 0],
  };
}

/** The next accounts, each with whether its mark is the one in force. */
export function selectMarks(afterKeyId: string): Statement {
  return {
    sql: `SELECT key_id, CASE WHEN accounts.low_mark IS NOT DISTINCT FROM ${markOf('key_id')} THEN 1 ELSE 0 END AS has_mark
          FROM accounts WHERE key_id > ? ORDER BY key_id LIMIT ?`,
    values: [afterKeyId, accountsPerRead],
  };
}

/** Gives accounts the marks in force, in one unit. */
export function applyMarks(keyIds: readonly string[]): Statement {
  return {
    sql: `UPDATE accounts SET low_mark = ${markOf('key_id')} WHERE key_id IN (${placesOf(keyIds)})`,
    values: keyIds,
  };
}

/** Notes that the accounts have the marks of some settings, unless others are stored meanwhile. */
export function settingsApplied(lowBalanceNanos: number | null): Statement {
  return {
    sql: 'UPDATE event_settings SET is_applied = 1 WHERE id = 1 AND low_balance IS NOT DISTINCT FROM CAST(? AS BIGINT)',
    values: [lowBalanceNanos],
  };
}

/** Keys in use that expire in a span of time, of which no event has the name that `nameOfExpiry` gives. */
export function selectExpiring(afterMs: number, untilMs: number, within: string): Statement {
  return {
    sql: `SELECT id, name, expires_at FROM api_keys
          WHERE expires_at > ? AND expires_at <= ? AND revoked_at IS NULL AND NOT EXISTS (
            SELECT 1 FROM outbox
            WHERE outbox.name = 'key.expiring:' || api_keys.id || ':' || CAST(? AS TEXT) || ':' || api_keys.expires_at)
          ORDER BY expires_at, id LIMIT ?`,
    values: [afterMs, untilMs, within, keysPerRead],
  };
}

const isSeenElsewhere = `EXISTS (SELECT 1 FROM upstream_outage_nodes AS nodes JOIN owners ON owners.id = nodes.owner
  WHERE nodes.upstream = ? AND nodes.owner <> ?)`;

/** The outages that were reported, and whether a process sees each of them. */
export function selectOutages(owner: string): Statement {
  return {
    sql: `SELECT outages.upstream, CASE WHEN nodes.owner IS NULL THEN 0 ELSE 1 END AS is_seen_here
          FROM upstream_outages AS outages
          LEFT JOIN upstream_outage_nodes AS nodes ON nodes.upstream = outages.upstream AND nodes.owner = ?`,
    values: [owner],
  };
}

/** Notes that a process sees an upstream down. Units run one after the other, so the event is added once. */
export function noteDown(upstream: string, owner: string, event: NewEvent, id: string): readonly Statement[] {
  return [
    {
      sql: `INSERT INTO outbox (id, name, type, subject, position, created_at, data)
            SELECT ?, ?, ?, ?, 0, now_ms(), ?
            WHERE NOT EXISTS (SELECT 1 FROM upstream_outages WHERE upstream = ?) RETURNING id`,
      values: [`evt_${id}`, event.name, event.type, event.subject, JSON.stringify(event.data), upstream],
    },
    {
      sql: 'INSERT INTO upstream_outages (upstream, since) VALUES (?, now_ms()) ON CONFLICT (upstream) DO NOTHING',
      values: [upstream],
    },
    {
      sql: 'INSERT INTO upstream_outage_nodes (upstream, owner) VALUES (?, ?) ON CONFLICT (upstream, owner) DO NOTHING',
      values: [upstream, owner],
    },
  ];
}

export function selectOutage(upstream: string): Statement {
  return { sql: 'SELECT since FROM upstream_outages WHERE upstream = ?', values: [upstream] };
}

/** Notes that a process sees an upstream up. The event is added with the end of the outage, which only one unit finds. */
export function noteUp(upstream: string, owner: string, event: NewEvent, id: string): readonly Statement[] {
  return [
    {
      sql: `INSERT INTO outbox (id, name, type, subject, position, created_at, data)
            SELECT ?, ?, ?, ?, 0, now_ms(), ?
            WHERE EXISTS (SELECT 1 FROM upstream_outages WHERE upstream = ?) AND NOT ${isSeenElsewhere} RETURNING id`,
      values: [
        `evt_${id}`,
        event.name,
        event.type,
        event.subject,
        JSON.stringify(event.data),
        upstream,
        upstream,
        owner,
      ],
    },
    ...endOutage(upstream, owner),
  ];
}

/** Ends an outage that no other process sees, without an event. */
export function endOutage(upstream: string, owner: string): readonly Statement[] {
  return [
    {
      sql: `DELETE FROM upstream_outages WHERE upstream = ? AND NOT ${isSeenElsewhere}`,
      values: [upstream, upstream, owner],
    },
    {
      sql: `DELETE FROM upstream_outage_nodes
            WHERE upstream = ? AND (owner = ? OR owner NOT IN (SELECT id FROM owners))`,
      values: [upstream, owner],
    },
  ];
}

import { subjects } from '../../domain/events.ts';
import type { NewEvent } from '../../domain/events.ts';
import { readPages } from '../../domain/pause.ts';
import type { NextId } from '../../domain/ports/clock.ts';
import type { Outbox, UpstreamOutages } from '../../domain/ports/outbox.ts';
import type { Engine, Row, SqlValue, Statement } from '../engine.ts';
import { markOf } from '../schema/triggers.ts';
import { listOf, lookUpRows, raw, sql } from '../statements.ts';

/** How many events one unit adds. */
const eventsPerUnit = 100;

/** Adds events over any engine. */
export function createOutbox(engine: Engine, nextId: NextId): Outbox {
  return {
    async add(events) {
      let added = 0;
      for (let at = 0; at < events.length; at += eventsPerUnit) {
        const unit = events.slice(at, at + eventsPerUnit).map((event) => insertEvent(event, nextId()));
        added += (await engine.run(unit)).flat().length;
      }
      return added;
    },
    async storeSettings({ lowBalanceNanos, budgetLevels }) {
      const none = { low_balance: null, is_applied: 1, budget_levels: 0 };
      const [stored = none] = await lookUpRows(engine, selectSettings);
      if ((stored['budget_levels'] === 1) !== budgetLevels)
        await engine.run([storeBudgetLevels(budgetLevels)]);
      if (stored['low_balance'] === lowBalanceNanos && stored['is_applied'] === 1) return;
      await engine.run([storeSettings(lowBalanceNanos)]);
      const next = (last: Row | null) => lookUpRows(engine, selectMarks(last?.['key_id'] ?? ''));
      for await (const accounts of readPages(next, accountsPerRead)) {
        const keyIds = accounts.filter((row) => row['has_mark'] === 0).map((row) => String(row['key_id']));
        if (keyIds.length > 0) await engine.run([applyMarks(keyIds)]);
      }
      await engine.run([settingsApplied(lowBalanceNanos)]);
    },
    async listExpiring(afterMs, untilMs, within) {
      const rows = await lookUpRows(engine, selectExpiring(afterMs, untilMs, within));
      return rows.map((row) => ({
        id: String(row['id']),
        name: String(row['name']),
        expiresAtMs: Number(row['expires_at']),
      }));
    },
  };
}

/** The outages of upstreams over any engine. `owner` is the id under which this process has its lease now. */
export function createUpstreamOutages(engine: Engine, owner: () => string, nextId: NextId): UpstreamOutages {
  return {
    async list() {
      const rows = await lookUpRows(engine, selectOutages(owner()));
      return rows.map((row) => ({
        upstream: String(row['upstream']),
        isSeenHere: row['is_seen_here'] === 1,
      }));
    },
    async sawDown(upstream) {
      const id = nextId();
      const event = { ...eventOf('upstream.down', upstream, id), data: { upstream } };
      const [added = []] = await engine.run(noteDown(upstream, owner(), event, id));
      return added.length > 0;
    },
    async sawUp(upstream) {
      const [outage] = await lookUpRows(engine, selectOutage(upstream));
      if (outage === undefined) return false;
      const id = nextId();
      const data = { upstream, down_since: new Date(Number(outage['since'])).toISOString() };
      const event = { ...eventOf('upstream.up', upstream, id), data };
      const [added = []] = await engine.run(noteUp(upstream, owner(), event, id));
      return added.length > 0;
    },
    async forget(upstream) {
      await engine.run(endOutage(upstream, owner()));
    },
  };
}

/** The event of an outage or of its end; the unit that adds it sees to it that it is added once. */
function eventOf(type: 'upstream.down' | 'upstream.up', upstream: string, id: string) {
  return { name: `${type}:${upstream}:${id}`, type, subject: subjects.upstream(upstream) };
}

/** How many keys one read finds. */
const keysPerRead = 200;

/** How many accounts one read finds, and one unit gives their marks: some milliseconds. */
const accountsPerRead = 500;

/** Adds an event, unless there is one of its name. */
function insertEvent({ name, type, subject, data, keptUntilMs = 0 }: NewEvent, id: string): Statement {
  return sql`INSERT INTO outbox (id, name, type, subject, position, created_at, data, kept_until)
    VALUES (${`evt_${id}`}, ${name}, ${type}, ${subject}, 0, now_ms(), ${JSON.stringify(data)}, ${keptUntilMs})
    ON CONFLICT (name) DO NOTHING RETURNING id`;
}

const selectSettings: Statement = sql`SELECT low_balance, is_applied, budget_levels FROM event_settings WHERE id = 1`;

/** Writes the settings, which are not applied to the accounts yet. */
function storeSettings(lowBalanceNanos: number | null): Statement {
  return sql`INSERT INTO event_settings (id, low_balance, is_applied) VALUES (1, ${lowBalanceNanos}, 0)
    ON CONFLICT (id) DO UPDATE SET low_balance = excluded.low_balance, is_applied = 0`;
}

/** Writes whether budgets add events when they reach a level. */
function storeBudgetLevels(areWanted: boolean): Statement {
  return sql`INSERT INTO event_settings (id, low_balance, is_applied, budget_levels) VALUES (1, NULL, 1, ${areWanted ? 1 : 0})
    ON CONFLICT (id) DO UPDATE SET budget_levels = excluded.budget_levels`;
}

/** The next accounts, each with whether its mark is the one in force. */
function selectMarks(afterKeyId: SqlValue): Statement {
  return sql`SELECT key_id, CASE WHEN accounts.low_mark IS NOT DISTINCT FROM ${raw(markOf('key_id'))} THEN 1 ELSE 0 END AS has_mark
    FROM accounts WHERE key_id > ${afterKeyId} ORDER BY key_id LIMIT ${accountsPerRead}`;
}

/** Gives accounts the marks in force, in one unit. */
function applyMarks(keyIds: readonly string[]): Statement {
  return sql`UPDATE accounts SET low_mark = ${raw(markOf('key_id'))} WHERE key_id IN (${listOf(keyIds)})`;
}

/** Notes that the accounts have the marks of some settings, unless others are stored meanwhile. */
function settingsApplied(lowBalanceNanos: number | null): Statement {
  return sql`UPDATE event_settings SET is_applied = 1 WHERE id = 1 AND low_balance IS NOT DISTINCT FROM CAST(${lowBalanceNanos} AS BIGINT)`;
}

/** Keys in use that expire in a span of time, of which no event has the name that `nameOfExpiry` gives. */
function selectExpiring(afterMs: number, untilMs: number, within: string): Statement {
  return sql`SELECT id, name, expires_at FROM api_keys
    WHERE expires_at > ${afterMs} AND expires_at <= ${untilMs} AND revoked_at IS NULL AND NOT EXISTS (
      SELECT 1 FROM outbox
      WHERE outbox.name = 'key.expiring:' || api_keys.id || ':' || CAST(${within} AS TEXT) || ':' || api_keys.expires_at)
    ORDER BY expires_at, id LIMIT ${keysPerRead}`;
}

/** That another process sees an upstream down. */
const isSeenElsewhere = (upstream: string, owner: string): Statement =>
  sql`EXISTS (SELECT 1 FROM upstream_outage_nodes AS nodes JOIN owners ON owners.id = nodes.owner
    WHERE nodes.upstream = ${upstream} AND nodes.owner <> ${owner})`;

/** The outages that were reported, and whether a process sees each of them. */
function selectOutages(owner: string): Statement {
  return sql`SELECT outages.upstream, CASE WHEN nodes.owner IS NULL THEN 0 ELSE 1 END AS is_seen_here
    FROM upstream_outages AS outages
    LEFT JOIN upstream_outage_nodes AS nodes ON nodes.upstream = outages.upstream AND nodes.owner = ${owner}`;
}

/** Adds an event under a condition. */
function insertEventIf(condition: Statement, { name, type, subject, data }: NewEvent, id: string): Statement {
  return sql`INSERT INTO outbox (id, name, type, subject, position, created_at, data)
    SELECT ${`evt_${id}`}, ${name}, ${type}, ${subject}, 0, now_ms(), ${JSON.stringify(data)}
    WHERE ${condition} RETURNING id`;
}

/** Notes that a process sees an upstream down. Units run one after the other, so the event is added once. */
function noteDown(upstream: string, owner: string, event: NewEvent, id: string): readonly Statement[] {
  return [
    insertEventIf(sql`NOT EXISTS (SELECT 1 FROM upstream_outages WHERE upstream = ${upstream})`, event, id),
    sql`INSERT INTO upstream_outages (upstream, since) VALUES (${upstream}, now_ms()) ON CONFLICT (upstream) DO NOTHING`,
    sql`INSERT INTO upstream_outage_nodes (upstream, owner) VALUES (${upstream}, ${owner}) ON CONFLICT (upstream, owner) DO NOTHING`,
  ];
}

function selectOutage(upstream: string): Statement {
  return sql`SELECT since FROM upstream_outages WHERE upstream = ${upstream}`;
}

/** Notes that a process sees an upstream up. The event is added with the end of the outage, which only one unit finds. */
function noteUp(upstream: string, owner: string, event: NewEvent, id: string): readonly Statement[] {
  return [
    insertEventIf(
      sql`EXISTS (SELECT 1 FROM upstream_outages WHERE upstream = ${upstream}) AND NOT ${isSeenElsewhere(upstream, owner)}`,
      event,
      id,
    ),
    ...endOutage(upstream, owner),
  ];
}

/** Ends an outage that no other process sees, without an event. */
function endOutage(upstream: string, owner: string): readonly Statement[] {
  return [
    sql`DELETE FROM upstream_outages WHERE upstream = ${upstream} AND NOT ${isSeenElsewhere(upstream, owner)}`,
    sql`DELETE FROM upstream_outage_nodes
      WHERE upstream = ${upstream} AND (owner = ${owner} OR owner NOT IN (SELECT id FROM owners))`,
  ];
}

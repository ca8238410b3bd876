import { subjects } from '../../domain/events.ts';
import type { NextId } from '../../domain/ports/clock.ts';
import type { Outbox, UpstreamOutages } from '../../domain/ports/outbox.ts';
import type { Engine } from '../engine.ts';
import { lookUpRows } from '../read-rows.ts';
import {
  accountsPerRead,
  applyMarks,
  endOutage,
  insertEvent,
  noteDown,
  noteUp,
  selectExpiring,
  selectMarks,
  selectOutage,
  selectOutages,
  selectSettings,
  settingsApplied,
  storeBudgetLevels,
  storeSettings,
} from './event-statements.ts';

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
      for (let last: string | undefined = ''; last !== undefined;) {
        const accounts = await lookUpRows(engine, selectMarks(last));
        const keyIds = accounts.filter((row) => row['has_mark'] === 0).map((row) => String(row['key_id']));
        if (keyIds.length > 0) await engine.run([applyMarks(keyIds)]);
        last = accounts.length < accountsPerRead ? undefined : String(accounts.at(-1)?.['key_id']);
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

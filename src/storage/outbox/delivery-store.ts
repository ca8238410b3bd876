import type { StoredEvent } from '../../domain/events.ts';
import type { Deliveries, DeliveryState, ManagedDeliveries } from '../../domain/ports/outbox.ts';
import type { Engine, Row } from '../engine.ts';
import { lookUpRows, readRows } from '../read-rows.ts';
import {
  countDeliveries,
  endDelivery,
  giveUpOrphans,
  removeEnded,
  resendEvent,
  retryDelivery,
  routeEvents,
  rowsPerRemoval,
  selectDeliveries,
  selectDue,
  selectOldestAge,
  selectUnrouted,
} from './delivery-statements.ts';

/** The longest wait between two attempts, in milliseconds: one that is due later was written before a clock was set back. */
const longestWaitMs = 7_200_000;

/** How many units of removals one cleaning makes at most. */
const removalsPerCleaning = 200;

/** Keeps the deliveries of events over any engine. */
export function createDeliveries(engine: Engine): Deliveries & ManagedDeliveries {
  return {
    async route(webhooks) {
      // A read delays no unit, and mostly finds nothing.
      if ((await lookUpRows(engine, selectUnrouted)).length === 0) return 0;
      const [routed = []] = await engine.run(routeEvents(webhooks));
      return routed.length;
    },
    async listDue(webhook, limit) {
      const rows = await lookUpRows(engine, selectDue(webhook, limit));
      return rows.map((row) => ({
        event: readEvent(row),
        subject: String(row['subject']),
        attempts: Number(row['attempts']),
      }));
    },
    async end(due, webhook, state, result) {
      await engine.run(endDelivery(due, webhook, state, result));
    },
    async retry(due, webhook, delayMs, result) {
      await engine.run([retryDelivery(due, webhook, delayMs, result)]);
    },
    async oldestAgeMs(webhooks) {
      const [row] = await lookUpRows(engine, selectOldestAge(webhooks));
      return row === undefined ? null : Math.max(0, Number(row['age']));
    },
    async clean(webhooks, { givenUpMs, keptMs }) {
      await engine.run(giveUpOrphans(webhooks, givenUpMs, longestWaitMs));
      for (let unit = 0; unit < removalsPerCleaning; unit++) {
        const removed = await engine.run(removeEnded(keptMs));
        if (removed.every((rows) => rows.length < rowsPerRemoval)) return;
      }
    },
    async list(filter, limit, before) {
      const rows = await readRows(engine, selectDeliveries(filter, limit + 1, before));
      const deliveries = rows.slice(0, limit).map(readDelivery);
      return { deliveries, next: rows.length > limit ? (deliveries.at(-1)?.number ?? null) : null };
    },
    async count(webhooks) {
      const rows = await engine.read(webhooks.map(countDeliveries));
      return rows.map(([row]) => ({ waiting: Number(row?.['waiting']), dead: Number(row?.['dead']) }));
    },
    async resend(eventId, webhooks) {
      const [rows = []] = await engine.run([resendEvent(eventId, webhooks)]);
      return rows.map((row) => String(row['webhook'])).toSorted();
    },
  };
}

function readEvent(row: Row): StoredEvent {
  return {
    id: String(row['id']),
    type: String(row['type']),
    createdAtMs: Number(row['created_at']),
    data: JSON.parse(String(row['data'])) as StoredEvent['data'],
  };
}

function readDelivery(row: Row) {
  const number = (column: string): number | null => (row[column] === null ? null : Number(row[column]));
  return {
    number: Number(row['number']),
    event: readEvent(row),
    webhook: String(row['webhook']),
    state: row['state'] as DeliveryState,
    attempts: Number(row['attempts']),
    dueAtMs: number('due_at'),
    endedAtMs: number('ended_at'),
    result: row['result'] === null ? null : String(row['result']),
  };
}

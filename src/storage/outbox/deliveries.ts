import type { StoredEvent } from '../../domain/events.ts';
import type {
  Deliveries,
  DeliveryState,
  DueDelivery,
  ManagedDeliveries,
  Subscriptions,
} from '../../domain/ports/outbox.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { lookUpRows, raw, readRows, sql, where, withWanted } from '../statements.ts';

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

/** How many events one unit routes, and how many rows one unit removes: some milliseconds each. */
const eventsPerRoute = 200;
const rowsPerRemoval = 500;

/** The stages of an event behind that of a new one, which is 0: being routed within a unit, and routed. */
const inRouting = raw('1');
const routed = raw('2');

/** Begins a statement that reads names as the table `wanted`. */
const withNames = (names: readonly string[]): Statement =>
  withWanted(
    { name: 'TEXT' },
    names.map((name) => [name]),
  );

/** Finds one event that is not routed yet. */
const selectUnrouted: Statement = sql`SELECT id FROM outbox WHERE stage < 2 ORDER BY stage, position, created_at, id LIMIT ${1}`;

/**
 * Makes the deliveries of new events, in one unit. Events are marked first: one that is committed meanwhile must not count as
 * routed. Those of one subject get their numbers in their order, and only the first of them that waits is due. Numbers begin at
 * the time: after the newest deliveries were removed, none is given again, behind which a reader's page could begin.
 */
function routeEvents(webhooks: Subscriptions): readonly Statement[] {
  const wanted = withWanted(
    { webhook: 'TEXT', type: 'TEXT' },
    webhooks.flatMap(({ name, types }) => types.map((type) => [name, type])),
  );
  return [
    sql`UPDATE outbox SET stage = ${inRouting} WHERE stage < ${routed} AND id IN (
      SELECT id FROM outbox WHERE stage < 2 ORDER BY stage, position, created_at, id LIMIT ${eventsPerRoute}) RETURNING id`,
    sql`${wanted}
      INSERT INTO webhook_deliveries (event_id, webhook, number, subject, since, state)
      SELECT outbox.id, wanted.webhook,
        (SELECT max(at_least) FROM (SELECT max(number) AS at_least FROM webhook_deliveries
            UNION ALL SELECT now_ms()) AS starts)
          + row_number() OVER (ORDER BY position, outbox.created_at, outbox.id, wanted.webhook),
        outbox.subject, (SELECT now_ms()), 'waiting'
      FROM outbox JOIN wanted ON wanted.type = outbox.type WHERE outbox.stage = ${inRouting} AND outbox.stage < 2
      ON CONFLICT (event_id, webhook) DO NOTHING`,
    sql`UPDATE webhook_deliveries SET due_at = now_ms()
      WHERE due_at IS NULL AND state = 'waiting'
        AND event_id IN (SELECT id FROM outbox WHERE stage = ${inRouting} AND stage < 2)
        AND NOT EXISTS (SELECT 1 FROM webhook_deliveries AS earlier
          WHERE earlier.webhook = webhook_deliveries.webhook AND earlier.subject = webhook_deliveries.subject
            AND earlier.ended_at IS NULL AND earlier.number < webhook_deliveries.number)`,
    sql`UPDATE outbox SET stage = ${routed} WHERE stage = ${inRouting} AND stage < 2`,
  ];
}

const event = sql`outbox.id AS id, outbox.type AS type, outbox.created_at AS created_at, outbox.data AS data`;

function selectDue(webhook: string, limit: number): Statement {
  return sql`SELECT ${event}, webhook_deliveries.subject AS subject, attempts
    FROM webhook_deliveries JOIN outbox ON outbox.id = event_id
    WHERE webhook = ${webhook} AND due_at <= (SELECT now_ms()) ORDER BY due_at, number LIMIT ${limit}`;
}

/** Ends a delivery and makes the next event of its subject due, in one unit. One that has ended stays as it is. */
function endDelivery(
  { event: { id }, subject }: DueDelivery,
  webhook: string,
  state: DeliveryState,
  result: string,
): readonly Statement[] {
  return [
    sql`UPDATE webhook_deliveries SET state = ${state}, attempts = attempts + 1, due_at = NULL, ended_at = now_ms(), result = ${result}
      WHERE event_id = ${id} AND webhook = ${webhook} AND state = 'waiting'`,
    sql`UPDATE webhook_deliveries SET due_at = now_ms()
      WHERE webhook = ${webhook} AND due_at IS NULL AND event_id = (SELECT event_id FROM webhook_deliveries
        WHERE webhook = ${webhook} AND subject = ${subject} AND ended_at IS NULL ORDER BY number LIMIT 1)`,
  ];
}

function retryDelivery(
  { event: { id } }: DueDelivery,
  webhook: string,
  delayMs: number,
  result: string,
): Statement {
  return sql`UPDATE webhook_deliveries
    SET attempts = attempts + 1, due_at = now_ms() + CAST(${Math.ceil(delayMs)} AS BIGINT), result = ${result}
    WHERE event_id = ${id} AND webhook = ${webhook} AND state = 'waiting'`;
}

/** The age of the oldest delivery that waits for one of some webhooks. */
function selectOldestAge(webhooks: readonly string[]): Statement {
  return sql`${withNames(webhooks)}
    SELECT (SELECT now_ms()) - since AS age FROM webhook_deliveries
    WHERE ended_at IS NULL AND EXISTS (SELECT 1 FROM wanted WHERE name = webhook) ORDER BY since LIMIT ${1}`;
}

/**
 * Gives up what waits for webhooks that are configured no more. What waited behind it is due then, for a webhook that comes
 * back; and so is what a clock that was set back made due too late.
 */
function giveUpOrphans(webhooks: Subscriptions, givenUpMs: number, longestMs: number): readonly Statement[] {
  const names = withNames(webhooks.map(({ name }) => name));
  return [
    sql`${names}
      UPDATE webhook_deliveries SET state = 'dead', due_at = NULL, ended_at = now_ms(), result = 'no such webhook'
      WHERE ended_at IS NULL AND since < (SELECT now_ms()) - CAST(${givenUpMs} AS BIGINT)
        AND webhook NOT IN (SELECT name FROM wanted)`,
    sql`${names}
      UPDATE webhook_deliveries SET due_at = now_ms()
      WHERE ended_at IS NULL AND due_at IS NULL AND webhook NOT IN (SELECT name FROM wanted)
        AND NOT EXISTS (SELECT 1 FROM webhook_deliveries AS earlier
          WHERE earlier.webhook = webhook_deliveries.webhook AND earlier.subject = webhook_deliveries.subject
            AND earlier.ended_at IS NULL AND earlier.number < webhook_deliveries.number)`,
    sql`${names}
      UPDATE webhook_deliveries SET due_at = now_ms() WHERE webhook IN (SELECT name FROM wanted)
        AND due_at > (SELECT now_ms()) + CAST(${longestMs} AS BIGINT)`,
  ];
}

/** Removes deliveries that ended long ago, and events without deliveries whose names need not be remembered. */
function removeEnded(keptMs: number): readonly Statement[] {
  return [
    sql`DELETE FROM webhook_deliveries WHERE (event_id, webhook) IN (SELECT event_id, webhook FROM webhook_deliveries
      WHERE ended_at < (SELECT now_ms()) - CAST(${keptMs} AS BIGINT) ORDER BY ended_at LIMIT ${rowsPerRemoval}) RETURNING number`,
    sql`DELETE FROM outbox WHERE id IN (SELECT id FROM outbox
      WHERE created_at < (SELECT now_ms()) - CAST(${keptMs} AS BIGINT) AND stage = 2 AND kept_until < (SELECT now_ms())
        AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE event_id = outbox.id)
      ORDER BY created_at, id LIMIT ${rowsPerRemoval}) RETURNING id`,
  ];
}

/** A page of deliveries, newest first. */
function selectDeliveries(
  filter: { readonly webhook?: string | undefined; readonly state?: DeliveryState | undefined },
  limit: number,
  before: number | null,
): Statement {
  const conditions: Statement[] = [];
  if (filter.webhook !== undefined) conditions.push(sql`webhook = ${filter.webhook}`);
  if (filter.state !== undefined) conditions.push(sql`state = ${filter.state}`);
  if (before !== null) conditions.push(sql`number < ${before}`);
  return sql`SELECT ${event}, number, webhook, state, attempts, due_at, ended_at, result
    FROM webhook_deliveries JOIN outbox ON outbox.id = event_id${where(conditions)} ORDER BY number DESC LIMIT ${limit}`;
}

/** Counts what waits for a webhook, and what was given up. */
function countDeliveries(webhook: string): Statement {
  const count = (state: DeliveryState): Statement =>
    sql`(SELECT count(*) FROM webhook_deliveries WHERE webhook = ${webhook} AND state = '${raw(state)}') AS ${raw(state)}`;
  return sql`SELECT ${count('waiting')}, ${count('dead')}`;
}

/** Has an event delivered again. One that waits is due at once, unless it is behind an earlier one of its subject. */
function resendEvent(eventId: string, webhooks: readonly string[]): Statement {
  return sql`${withNames(webhooks)}
    UPDATE webhook_deliveries SET attempts = 0, ended_at = NULL, since = now_ms(),
      due_at = CASE WHEN state = 'waiting' AND due_at IS NULL THEN NULL ELSE now_ms() END, state = 'waiting'
    WHERE event_id = ${eventId} AND webhook IN (SELECT name FROM wanted) RETURNING webhook`;
}

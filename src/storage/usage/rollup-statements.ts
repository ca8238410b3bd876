import { placesOf } from '../engine.ts';
import type { Statement } from '../engine.ts';
import { columnOf, dayMs, monthOf, rolledKinds, sumColumns } from './usage-kinds.ts';
import type { RolledPeriod, UsageKind } from './usage-kinds.ts';
import { usageDimensions } from '../../domain/ports/usage.ts';

/** A day or a month. */
export interface Period {
  readonly period: RolledPeriod;
  readonly startMs: number;
}

/** When a period ends, in milliseconds since 1970. */
export function endOf({ period, startMs }: Period): number {
  return period === 'day' ? startMs + dayMs : monthOf(startMs, 1);
}

export function selectOldestHour(fromMs: number): Statement {
  return { sql: 'SELECT hour FROM usage_hours WHERE hour >= ? ORDER BY hour LIMIT 1', values: [fromMs] };
}

/** The states of all days and months from a time on. */
export function selectStates(fromMs: number): Statement {
  return {
    sql: `SELECT period, start, state FROM usage_periods WHERE period IN ('day', 'month') AND start >= ?
          ORDER BY period, start`,
    values: [fromMs],
  };
}

const isStale = `EXISTS (SELECT 1 FROM usage_periods WHERE period = ? AND usage_periods.start = ? AND state = 'stale')`;

/** Finds whether a kind of a stale period has more rows than one unit deletes. */
export function selectManyRows({ name }: UsageKind, startMs: number, rows: number): Statement {
  return {
    sql: `SELECT key_id FROM usage_rollups WHERE kind = ? AND start = ? ORDER BY key_id LIMIT 1 OFFSET ?`,
    values: [name, startMs, rows],
  };
}

/** Deletes the rows of some keys of a period that is out of date: nothing reads them. */
export function clearKeys({ period, startMs }: Period, { name }: UsageKind, upTo: string): Statement {
  return {
    sql: `DELETE FROM usage_rollups WHERE kind = ? AND start = ? AND key_id <= ? AND ${isStale} RETURNING start`,
    values: [name, startMs, upTo, period, startMs],
  };
}

/** Deletes what is left of a period that is out of date. */
function clear({ period, startMs }: Period): Statement {
  const kinds = rolledKinds[period].map(({ name }) => name);
  return {
    sql: `DELETE FROM usage_rollups WHERE kind IN (${placesOf(kinds)}) AND start = ? AND ${isStale}`,
    values: [...kinds, startMs, period, startMs],
  };
}

/**
 * Begins to roll a day up that is not, or is out of date. From now on every transaction that changes its hours marks it; it
 * may be read for sums once those that began before have ended. The sums of its month are none any more.
 */
export function beginDay(startMs: number): readonly Statement[] {
  return [
    clear({ period: 'day', startMs }),
    {
      sql: `INSERT INTO usage_periods (period, start, state, barrier, next_hour)
            VALUES ('day', CAST(? AS BIGINT), 'rolling', NULL, CAST(? AS BIGINT))
            ON CONFLICT (period, start) DO UPDATE SET state = 'rolling', barrier = NULL, next_hour = excluded.next_hour
              WHERE usage_periods.state = 'stale'`,
      values: [startMs, startMs],
    },
    {
      sql: `UPDATE usage_periods SET state = 'stale' WHERE period = 'month' AND start = ? AND state <> 'stale'`,
      values: [monthOf(startMs)],
    },
  ];
}

/**
 * Notes for the days that were begun which transactions have to end first: all with a lower number than that of this unit,
 * which is a later one than that in which they were begun, so that it is higher than that of any which did not see them. A
 * higher number than this one is that of another server, whose dump was restored here: no transaction would reach it for long.
 */
export const noteBarrier: Statement = {
  sql: `UPDATE usage_periods SET barrier = transaction_number()
        WHERE period = 'day' AND state = 'rolling' AND (barrier IS NULL OR barrier > transaction_number())`,
  values: [],
};

/** Begins to roll a month up, if all its days are: no transaction changes their hours without marking one. */
export function beginMonth(startMs: number): readonly Statement[] {
  const endMs = monthOf(startMs, 1);
  return [
    clear({ period: 'month', startMs }),
    {
      sql: `INSERT INTO usage_periods (period, start, state, barrier, next_hour)
            SELECT 'month', CAST(? AS BIGINT), 'rolling', 0, CAST(? AS BIGINT)
            WHERE (SELECT count(*) FROM usage_periods WHERE period = 'day' AND start >= ? AND start < ?
                   AND state = 'rolled') = ?
            ON CONFLICT (period, start) DO UPDATE SET state = 'rolling', next_hour = excluded.next_hour
              WHERE usage_periods.state = 'stale'`,
      values: [startMs, startMs, startMs, endMs, (endMs - startMs) / dayMs],
    },
  ];
}

/** Counts the days for which transactions have to end first. */
export const countWaiting: Statement = {
  sql: `SELECT count(*) AS count FROM usage_periods WHERE period = 'day' AND state = 'rolling'
        AND NOT barrier < oldest_transaction()`,
  values: [],
};

/** How far a period that is being rolled up has come; no row for any other, and for a day that has to wait. */
export function selectProgress({ period, startMs }: Period): Statement {
  return {
    sql: `SELECT next_hour FROM usage_periods WHERE period = ? AND start = ? AND state = 'rolling'
          AND barrier < oldest_transaction()`,
    values: [period, startMs],
  };
}

/** The condition that nothing has changed since `selectProgress`, and its values. */
const isNext = `EXISTS (SELECT 1 FROM usage_periods WHERE period = ? AND usage_periods.start = ? AND state = 'rolling'
  AND next_hour = ? AND barrier < oldest_transaction())`;

/**
 * Adds some hours to the sums of a period, once: it goes on from there then, and is rolled up behind its last one. A period
 * that was marked meanwhile stays out of date, and what was added to it is deleted when it is begun again.
 */
export function addHours(of: Period, fromMs: number, toMs: number): readonly Statement[] {
  const { period, startMs } = of;
  const state = toMs === endOf(of) ? 'rolled' : 'rolling';
  return [
    ...rolledKinds[period].map((kind) => addKind(kind, of, fromMs, toMs)),
    {
      sql: `UPDATE usage_periods SET state = ?, next_hour = ?
            WHERE period = ? AND start = ? AND state = 'rolling' AND next_hour = ? RETURNING next_hour`,
      values: [state, toMs, period, startMs, fromMs],
    },
  ];
}

function addKind(
  { name, dimensions }: UsageKind,
  { period, startMs }: Period,
  fromMs: number,
  toMs: number,
): Statement {
  const columns = usageDimensions.map((one) => columnOf[one]);
  const values = usageDimensions.map((one) => (dimensions.includes(one) ? columnOf[one] : `''`));
  const groups =
    dimensions.length === 0 ? '' : `GROUP BY ${dimensions.map((one) => columnOf[one]).join(', ')}`;
  return {
    sql: `INSERT INTO usage_rollups (kind, start, ${columns.join(', ')}, ${sumColumns.join(', ')})
          SELECT CAST(? AS TEXT), CAST(? AS BIGINT), ${values.join(', ')},
            ${sumColumns.map((column) => `CAST(sum(${column}) AS BIGINT)`).join(', ')}
          FROM usage_hours WHERE hour >= ? AND hour < ? AND ${isNext} ${groups} HAVING count(*) > 0
          ON CONFLICT (kind, start, ${columns.join(', ')}) DO UPDATE SET
            ${sumColumns.map((column) => `${column} = usage_rollups.${column} + excluded.${column}`).join(', ')}`,
    values: [name, startMs, fromMs, toMs, period, startMs, fromMs],
  };
}

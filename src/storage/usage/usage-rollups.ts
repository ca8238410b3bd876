import type { Pause } from '../../domain/pause.ts';
import { usageDimensions } from '../../domain/ports/usage.ts';
import type { UsageRollups } from '../../domain/ports/usage.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { placesOf, readCount, readRows } from '../statements.ts';
import {
  columnOf,
  dayMs,
  dayOf,
  firstRolledMs,
  hourMs,
  monthOf,
  rolledKinds,
  sumColumns,
} from './usage-kinds.ts';
import type { RolledPeriod, UsageKind } from './usage-kinds.ts';
import { selectHourBehind } from './usage-statements.ts';

/** How long a day must be over before it is rolled up, in milliseconds: most of its requests have ended by then. */
const graceMs = 3_600_000;

/** How many days back are rolled up: what is older is read by its hours. */
const maxDays = 4_000;

/** How many days are begun in one unit, and how many rows are added or deleted in one: some milliseconds each. */
const daysPerUnit = 50;
const defaultRowsPerUnit = 1_000;

/** How often it is looked whether earlier transactions have ended; then the rest is left for the next time. */
const maxLooks = 50;

/** Rolls usage up over any engine, beside the units that count it. */
export function createUsageRollups(engine: Engine, rowsPerUnit = defaultRowsPerUnit): UsageRollups {
  return {
    async rollUp(nowMs, pause) {
      const work: Work = { engine, rowsPerUnit, pause };
      const endMs = dayOf(nowMs - graceMs);
      const firstMs = Math.max(firstRolledMs, monthOf(endMs - maxDays * dayMs));
      const [oldest] = await readRows(engine, selectOldestHour(firstMs));
      if (oldest === undefined) return 0;
      const fromMs = Math.max(firstMs, monthOf(Number(oldest['hour'])));
      await beginDays(work, fromMs, endMs);
      await waitForBarrier(engine, pause);
      const states = await readRows(engine, selectStates(fromMs));
      let count = 0;
      for (const startMs of startsOf(states, 'day', 'rolling'))
        if (startMs < endMs && (await roll(work, { period: 'day', startMs }))) count++;
      const rolled = new Set(startsOf(await readRows(engine, selectStates(fromMs)), 'month', 'rolled'));
      for (let startMs = fromMs; monthOf(startMs, 1) <= endMs; startMs = monthOf(startMs, 1)) {
        if (rolled.has(startMs)) continue;
        const month: Period = { period: 'month', startMs };
        await clear(work, month);
        await engine.run(beginMonth(startMs));
        if (await roll(work, month)) count++;
      }
      return count;
    },
  };
}

/** What a run works with. */
interface Work {
  readonly engine: Engine;
  readonly rowsPerUnit: number;
  readonly pause: Pause;
}

/** Begins all days that are not rolled up. */
async function beginDays(work: Work, fromMs: number, endMs: number): Promise<void> {
  const { engine, pause } = work;
  const states = await readRows(engine, selectStates(fromMs));
  const begun = new Set([...startsOf(states, 'day', 'rolled'), ...startsOf(states, 'day', 'rolling')]);
  const stale = new Set(startsOf(states, 'day', 'stale'));
  const missing = Array.from(
    { length: Math.max(0, (endMs - fromMs) / dayMs) },
    (_, at) => fromMs + at * dayMs,
  ).filter((startMs) => !begun.has(startMs));
  for (let at = 0; at < missing.length; at += daysPerUnit) {
    const some = missing.slice(at, at + daysPerUnit);
    for (const startMs of some) if (stale.has(startMs)) await clear(work, { period: 'day', startMs });
    await engine.run(some.flatMap(beginDay));
    await pause();
  }
  await engine.run([noteBarrier]);
}

/** Deletes most of the rows of a period that is out of date, some at a time. */
async function clear({ engine, rowsPerUnit, pause }: Work, period: Period): Promise<void> {
  for (const kind of rolledKinds[period.period])
    for (;;) {
      const [behind] = await readRows(engine, selectManyRows(kind, period.startMs, rowsPerUnit));
      if (behind === undefined) break;
      const [deleted = []] = await engine.run([clearKeys(period, kind, String(behind['key_id']))]);
      await pause();
      // Another process has begun it meanwhile.
      if (deleted.length === 0) break;
    }
}

/** Waits for the transactions that may not have seen which days were begun. A day for which it was too short is left. */
async function waitForBarrier(engine: Engine, pause: Pause): Promise<void> {
  for (let looks = 0; looks < maxLooks && (await readCount(engine, countWaiting)) > 0; looks++) await pause();
}

/** Adds the hours of a period that was begun; resolves with whether it is rolled up now. */
async function roll({ engine, rowsPerUnit, pause }: Work, period: Period): Promise<boolean> {
  const endMs = endOf(period);
  for (;;) {
    const [progress] = await readRows(engine, selectProgress(period));
    if (progress === undefined) return false;
    const fromMs = Number(progress['next_hour']);
    const [behind] = await readRows(engine, selectHourBehind({ fromMs, toMs: endMs }, rowsPerUnit));
    const toMs = behind === undefined ? endMs : Math.max(fromMs + hourMs, Number(behind['start']));
    const added = (await engine.run(addHours(period, fromMs, toMs))).at(-1) ?? [];
    if (added.length > 0 && toMs === endMs) return true;
    await pause();
  }
}

function startsOf(rows: readonly Row[], period: Period['period'], state: string): readonly number[] {
  return rows
    .filter((row) => row['period'] === period && row['state'] === state)
    .map((row) => Number(row['start']));
}

/** A day or a month. */
interface Period {
  readonly period: RolledPeriod;
  readonly startMs: number;
}

/** When a period ends, in milliseconds since 1970. */
function endOf({ period, startMs }: Period): number {
  return period === 'day' ? startMs + dayMs : monthOf(startMs, 1);
}

function selectOldestHour(fromMs: number): Statement {
  return { sql: 'SELECT hour FROM usage_hours WHERE hour >= ? ORDER BY hour LIMIT 1', values: [fromMs] };
}

/** The states of all days and months from a time on. */
function selectStates(fromMs: number): Statement {
  return {
    sql: `SELECT period, start, state FROM usage_periods WHERE period IN ('day', 'month') AND start >= ?
          ORDER BY period, start`,
    values: [fromMs],
  };
}

const isStale = `EXISTS (SELECT 1 FROM usage_periods WHERE period = ? AND usage_periods.start = ? AND state = 'stale')`;

/** Finds whether a kind of a stale period has more rows than one unit deletes. */
function selectManyRows({ name }: UsageKind, startMs: number, rows: number): Statement {
  return {
    sql: `SELECT key_id FROM usage_rollups WHERE kind = ? AND start = ? ORDER BY key_id LIMIT 1 OFFSET ?`,
    values: [name, startMs, rows],
  };
}

/** Deletes the rows of some keys of a period that is out of date: nothing reads them. */
function clearKeys({ period, startMs }: Period, { name }: UsageKind, upTo: string): Statement {
  return {
    sql: `DELETE FROM usage_rollups WHERE kind = ? AND start = ? AND key_id <= ? AND ${isStale} RETURNING start`,
    values: [name, startMs, upTo, period, startMs],
  };
}

/** Deletes what is left of a period that is out of date. */
function clearRest({ period, startMs }: Period): Statement {
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
function beginDay(startMs: number): readonly Statement[] {
  return [
    clearRest({ period: 'day', startMs }),
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
const noteBarrier: Statement = {
  sql: `UPDATE usage_periods SET barrier = transaction_number()
        WHERE period = 'day' AND state = 'rolling' AND (barrier IS NULL OR barrier > transaction_number())`,
  values: [],
};

/** Begins to roll a month up, if all its days are: no transaction changes their hours without marking one. */
function beginMonth(startMs: number): readonly Statement[] {
  const endMs = monthOf(startMs, 1);
  return [
    clearRest({ period: 'month', startMs }),
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
const countWaiting: Statement = {
  sql: `SELECT count(*) AS count FROM usage_periods WHERE period = 'day' AND state = 'rolling'
        AND NOT barrier < oldest_transaction()`,
  values: [],
};

/** How far a period that is being rolled up has come; no row for any other, and for a day that has to wait. */
function selectProgress({ period, startMs }: Period): Statement {
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
function addHours(of: Period, fromMs: number, toMs: number): readonly Statement[] {
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

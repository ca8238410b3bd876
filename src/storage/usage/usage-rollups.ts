import type { Pause } from '../../domain/pause.ts';
import { usageDimensions } from '../../domain/ports/usage.ts';
import type { UsageRollups } from '../../domain/ports/usage.ts';
import { dayMs, dayOf } from '../../shared/duration.ts';
import type { Engine, Statement } from '../engine.ts';
import { listOf, raw, readCount, readRows, sql } from '../statements.ts';
import {
  columnOf,
  endOfPeriod,
  firstRolledMs,
  hourMs,
  monthOf,
  rolledKinds,
  startsOf,
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
  const endMs = endOfPeriod(period.period, period.startMs);
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

/** A day or a month. */
interface Period {
  readonly period: RolledPeriod;
  readonly startMs: number;
}

function selectOldestHour(fromMs: number): Statement {
  return sql`SELECT hour FROM usage_hours WHERE hour >= ${fromMs} ORDER BY hour LIMIT 1`;
}

/** The states of all days and months from a time on. */
function selectStates(fromMs: number): Statement {
  return sql`SELECT period, start, state FROM usage_periods WHERE period IN ('day', 'month') AND start >= ${fromMs}
    ORDER BY period, start`;
}

/** That a period is out of date. */
const isStale = ({ period, startMs }: Period): Statement =>
  sql`EXISTS (SELECT 1 FROM usage_periods WHERE period = ${period} AND usage_periods.start = ${startMs} AND state = 'stale')`;

/** Finds whether a kind of a stale period has more rows than one unit deletes. */
function selectManyRows({ name }: UsageKind, startMs: number, rows: number): Statement {
  return sql`SELECT key_id FROM usage_rollups WHERE kind = ${name} AND start = ${startMs} ORDER BY key_id LIMIT 1 OFFSET ${rows}`;
}

/** Deletes the rows of some keys of a period that is out of date: nothing reads them. */
function clearKeys(of: Period, { name }: UsageKind, upTo: string): Statement {
  return sql`DELETE FROM usage_rollups
    WHERE kind = ${name} AND start = ${of.startMs} AND key_id <= ${upTo} AND ${isStale(of)} RETURNING start`;
}

/** Deletes what is left of a period that is out of date. */
function clearRest(of: Period): Statement {
  const kinds = rolledKinds[of.period].map(({ name }) => name);
  return sql`DELETE FROM usage_rollups WHERE kind IN (${listOf(kinds)}) AND start = ${of.startMs} AND ${isStale(of)}`;
}

/**
 * Begins to roll a day up that is not, or is out of date. From now on every transaction that changes its hours marks it; it
 * may be read for sums once those that began before have ended. The sums of its month are none any more.
 */
function beginDay(startMs: number): readonly Statement[] {
  return [
    clearRest({ period: 'day', startMs }),
    sql`INSERT INTO usage_periods (period, start, state, barrier, next_hour)
      VALUES ('day', CAST(${startMs} AS BIGINT), 'rolling', NULL, CAST(${startMs} AS BIGINT))
      ON CONFLICT (period, start) DO UPDATE SET state = 'rolling', barrier = NULL, next_hour = excluded.next_hour
        WHERE usage_periods.state = 'stale'`,
    sql`UPDATE usage_periods SET state = 'stale' WHERE period = 'month' AND start = ${monthOf(startMs)} AND state <> 'stale'`,
  ];
}

/**
 * Notes for the days that were begun which transactions have to end first: all with a lower number than that of this unit,
 * which is a later one than that in which they were begun, so that it is higher than that of any which did not see them. A
 * higher number than this one is that of another server, whose dump was restored here: no transaction would reach it for long.
 */
const noteBarrier: Statement = sql`UPDATE usage_periods SET barrier = transaction_number()
  WHERE period = 'day' AND state = 'rolling' AND (barrier IS NULL OR barrier > transaction_number())`;

/** Begins to roll a month up, if all its days are: no transaction changes their hours without marking one. */
function beginMonth(startMs: number): readonly Statement[] {
  const endMs = monthOf(startMs, 1);
  return [
    clearRest({ period: 'month', startMs }),
    sql`INSERT INTO usage_periods (period, start, state, barrier, next_hour)
      SELECT 'month', CAST(${startMs} AS BIGINT), 'rolling', 0, CAST(${startMs} AS BIGINT)
      WHERE (SELECT count(*) FROM usage_periods WHERE period = 'day' AND start >= ${startMs} AND start < ${endMs}
             AND state = 'rolled') = ${(endMs - startMs) / dayMs}
      ON CONFLICT (period, start) DO UPDATE SET state = 'rolling', next_hour = excluded.next_hour
        WHERE usage_periods.state = 'stale'`,
  ];
}

/** Counts the days for which transactions have to end first. */
const countWaiting: Statement = sql`SELECT count(*) AS count FROM usage_periods WHERE period = 'day' AND state = 'rolling'
  AND NOT barrier < oldest_transaction()`;

/** How far a period that is being rolled up has come; no row for any other, and for a day that has to wait. */
function selectProgress({ period, startMs }: Period): Statement {
  return sql`SELECT next_hour FROM usage_periods WHERE period = ${period} AND start = ${startMs} AND state = 'rolling'
    AND barrier < oldest_transaction()`;
}

/** That nothing has changed since `selectProgress`. */
const isNext = ({ period, startMs }: Period, hour: number): Statement =>
  sql`EXISTS (SELECT 1 FROM usage_periods WHERE period = ${period} AND usage_periods.start = ${startMs}
    AND state = 'rolling' AND next_hour = ${hour} AND barrier < oldest_transaction())`;

/**
 * Adds some hours to the sums of a period, once: it goes on from there then, and is rolled up behind its last one. A period
 * that was marked meanwhile stays out of date, and what was added to it is deleted when it is begun again.
 */
function addHours(of: Period, fromMs: number, toMs: number): readonly Statement[] {
  const { period, startMs } = of;
  const state = toMs === endOfPeriod(period, startMs) ? 'rolled' : 'rolling';
  return [
    ...rolledKinds[period].map((kind) => addKind(kind, of, fromMs, toMs)),
    sql`UPDATE usage_periods SET state = ${state}, next_hour = ${toMs}
      WHERE period = ${period} AND start = ${startMs} AND state = 'rolling' AND next_hour = ${fromMs} RETURNING next_hour`,
  ];
}

function addKind({ name, dimensions }: UsageKind, of: Period, fromMs: number, toMs: number): Statement {
  const columns = raw(usageDimensions.map((one) => columnOf[one]).join(', '));
  const values = usageDimensions.map((one) => (dimensions.includes(one) ? columnOf[one] : `''`));
  const groups =
    dimensions.length === 0 ? '' : `GROUP BY ${dimensions.map((one) => columnOf[one]).join(', ')}`;
  const sums = sumColumns.map((column) => `CAST(sum(${column}) AS BIGINT)`);
  const added = sumColumns.map((column) => `${column} = usage_rollups.${column} + excluded.${column}`);
  return sql`INSERT INTO usage_rollups (kind, start, ${columns}, ${raw(sumColumns.join(', '))})
    SELECT CAST(${name} AS TEXT), CAST(${of.startMs} AS BIGINT), ${raw(values.join(', '))}, ${raw(sums.join(', '))}
    FROM usage_hours
    WHERE hour >= ${fromMs} AND hour < ${toMs} AND ${isNext(of, fromMs)} ${raw(groups)} HAVING count(*) > 0
    ON CONFLICT (kind, start, ${columns}) DO UPDATE SET ${raw(added.join(', '))}`;
}

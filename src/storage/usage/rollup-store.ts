import type { Pause } from '../../domain/pause.ts';
import type { UsageRollups } from '../../domain/ports/usage.ts';
import type { Engine, Row } from '../engine.ts';
import { readCount, readRows } from '../read-rows.ts';
import {
  addHours,
  beginDay,
  beginMonth,
  clearKeys,
  countWaiting,
  endOf,
  noteBarrier,
  selectManyRows,
  selectOldestHour,
  selectProgress,
  selectStates,
} from './rollup-statements.ts';
import type { Period } from './rollup-statements.ts';
import { dayMs, dayOf, firstRolledMs, hourMs, monthOf, rolledKinds } from './usage-kinds.ts';
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

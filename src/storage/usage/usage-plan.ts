import { dayMs, dayOf } from '../../shared/duration.ts';
import type { Results, Row, Statement } from '../engine.ts';
import { sql } from '../statements.ts';
import { firstRolledMs, hourMs, monthOf, startsOf } from './usage-kinds.ts';
import type { RolledPeriod, UsageKind } from './usage-kinds.ts';

/** How many ranges of hours a plan may have; with more, all of it is one range. SQLite takes 500 parts of a union. */
const maxRanges = 50;

/** Times from one to the one before another, in milliseconds since 1970. */
export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Which days and months are rolled up, in some time. */
interface RolledPeriods {
  readonly days: ReadonlySet<number>;
  /** The months that are rolled up and none of whose days is out of date. */
  readonly months: ReadonlySet<number>;
  /** Their states as one text, by which two reads are compared. */
  readonly version: string;
}

/** What usage there is, as far as a plan has to know it. */
export interface UsageExtent extends RolledPeriods {
  /** The months of which there are hours. There may be others in the first day of 1970. */
  readonly hours: TimeRange;
}

/** Where the sums of some time are read. */
export interface UsagePlan {
  readonly months: readonly number[];
  readonly days: readonly number[];
  /** What is in no rollup, each behind the one before. */
  readonly hours: readonly TimeRange[];
}

/** The states of the days and months that begin in some time, and of the month in which it begins. */
function selectPeriods({ fromMs, toMs }: TimeRange): Statement {
  return sql`SELECT period, start, state FROM usage_periods WHERE period IN ('day', 'month') AND start >= ${fromMs} AND start < ${toMs}
    AND state <> 'rolling' ORDER BY period, start`;
}

/** What `selectPeriods` found. */
function readPeriods(rows: readonly Row[]): RolledPeriods {
  const outdated = new Set(startsOf(rows, 'day', 'stale').map((start) => monthOf(start)));
  const days = new Set(startsOf(rows, 'day', 'rolled'));
  const months = new Set(startsOf(rows, 'month', 'rolled').filter((start) => !outdated.has(start)));
  return { days, months, version: `${[...days].join()};${[...months].join()}` };
}

/** The statements whose results are the extent of the usage of some time. */
export function selectExtent(time: TimeRange): readonly Statement[] {
  return [
    selectPeriods(time),
    sql`SELECT (SELECT hour FROM usage_hours WHERE hour >= ${firstRolledMs} ORDER BY hour LIMIT 1) AS first,
      (SELECT hour FROM usage_hours WHERE hour >= ${firstRolledMs} ORDER BY hour DESC LIMIT 1) AS last`,
  ];
}

/** What `selectExtent` found. */
export function readExtent([states = [], ends = []]: Results): UsageExtent {
  const { version, ...periods } = readPeriods(states);
  const [first, last] = [Number(ends[0]?.['first'] ?? 0), Number(ends[0]?.['last'] ?? 0)];
  const fromMs = Math.max(firstRolledMs, monthOf(first));
  const hours = { fromMs, toMs: Math.max(fromMs, monthOf(last, 1)) };
  return { ...periods, hours, version: `${version};${hours.fromMs}-${hours.toMs}` };
}

/**
 * The parts of some time in which there may be hours. Few of them can be named one by one, which finds the rows of a key by the
 * index; in a range that begins in 1970 or ends in 9999 the rows of all keys would be read.
 */
function withHours({ fromMs, toMs }: TimeRange, { hours }: UsageExtent): readonly TimeRange[] {
  const parts = [
    { fromMs, toMs: Math.min(toMs, firstRolledMs) },
    { fromMs: Math.max(fromMs, hours.fromMs), toMs: Math.min(toMs, hours.toMs) },
  ];
  return parts.filter((part) => part.fromMs < part.toMs);
}

/** The plan of some time: whole months and days where they are rolled up by what is needed, and hours for all else. */
export function planUsage(
  { fromMs, toMs }: TimeRange,
  extent: UsageExtent,
  kinds: Readonly<Record<RolledPeriod, UsageKind | null>>,
): UsagePlan {
  const months: number[] = [];
  const days: number[] = [];
  const hours: TimeRange[] = [];
  const starts = [
    ...(kinds.month === null ? [] : extent.months),
    ...(kinds.day === null ? [] : extent.days),
  ].filter((start) => start >= fromMs && start < toMs);
  let at = fromMs;
  const take = (start: number, endMs: number, into: number[]): void => {
    if (start < at || endMs > toMs) return;
    if (start > at) hours.push(...withHours({ fromMs: at, toMs: start }, extent));
    into.push(start);
    at = endMs;
  };
  // At the same time the month comes first: the days in it then begin before what is left.
  for (const start of [...new Set(starts)].toSorted((a, b) => a - b)) {
    if (kinds.month !== null && extent.months.has(start)) take(start, monthOf(start, 1), months);
    if (kinds.day !== null && extent.days.has(start)) take(start, start + dayMs, days);
  }
  if (at < toMs) hours.push(...withHours({ fromMs: at, toMs }, extent));
  if (hours.length > maxRanges) return { months: [], days: [], hours: [{ fromMs, toMs }] };
  return { months, days, hours };
}

/** How many hours some ranges have. */
export function countHours(ranges: readonly TimeRange[]): number {
  return ranges.reduce((count, { fromMs, toMs }) => count + (toMs - fromMs) / hourMs, 0);
}

/** The first time in a range that is in no day that is rolled up; its end if there is none. */
export function firstUnrolled({ fromMs, toMs }: TimeRange, { days }: RolledPeriods): number {
  let at = fromMs;
  while (at < toMs && at >= firstRolledMs && at === dayOf(at) && days.has(at)) at += dayMs;
  return Math.min(at, toMs);
}

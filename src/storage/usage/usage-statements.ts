import type { Outcome } from '../../domain/money/consumption.ts';
import { usageDimensions, usagePeriods } from '../../domain/ports/usage.ts';
import type {
  UsageDimension,
  UsageFilter,
  UsageGroup,
  UsagePeriod,
  UsageRow,
} from '../../domain/ports/usage.ts';
import { dayMs } from '../../shared/duration.ts';
import type { Row, SqlValue, Statement } from '../engine.ts';
import { joined, listOf, raw, sql } from '../statements.ts';
import { columnOf, endOfPeriod, hourMs, monthOf, smallestKind, sumColumns } from './usage-kinds.ts';
import type { RolledPeriod, UsageKind } from './usage-kinds.ts';
import { countHours, planUsage, selectExtent } from './usage-plan.ts';
import type { TimeRange, UsageExtent, UsagePlan } from './usage-plan.ts';

/** How many days or hours are named one by one, so that rows of some keys are found by the index; more are a range. */
const maxNamed = 1_500;

/** Keys that follow each other by their ids. */
export interface KeyRange {
  readonly from: string;
  /** The last one; `null` for all from the first one on. */
  readonly upTo: string | null;
}

/** A part of what was asked for, as it is read at once. */
export interface UsageSlice {
  readonly time: TimeRange;
  /** `null` for all keys. */
  readonly keys: KeyRange | null;
}

/** The groups of a query as its rows are ordered by them. */
export interface OrderedGroups {
  readonly period: UsagePeriod | null;
  readonly dimensions: readonly UsageDimension[];
}

/** The values of a row's groups, in their order; some of the first ones stand for all rows that begin with them. */
export type GroupValues = readonly (string | number)[];

/** What a slice is asked for. */
export interface SliceQuery {
  readonly groups: OrderedGroups;
  readonly where: UsageFilter;
  readonly plan: UsagePlan;
  readonly kinds: Readonly<Record<RolledPeriod, UsageKind | null>>;
  readonly slice: UsageSlice;
  /** The groups behind which rows are wanted. */
  readonly after: GroupValues | null;
  readonly limit: number;
}

/** Puts groups in the order in which rows are ordered by them. */
export function orderGroups(by: readonly UsageGroup[]): OrderedGroups {
  const dimensions = usageDimensions.filter((one) => by.includes(one));
  const period = usagePeriods.find((one) => by.includes(one)) ?? null;
  return { period, dimensions };
}

/** The dimensions that rows must have for some groups and filters. */
export function neededDimensions(groups: OrderedGroups, where: UsageFilter): ReadonlySet<UsageDimension> {
  return new Set([...groups.dimensions, ...filtersOf(where).map(([dimension]) => dimension)]);
}

/** The groups of a slice behind some values, in their order, each with the number of rows that it was read from. */
export function selectSlice(query: SliceQuery): Statement {
  const { groups, after, limit } = query;
  const names = [
    ...(groups.period === null ? [] : ['period_start']),
    ...groups.dimensions.map((one) => columnOf[one]),
  ];
  const behind =
    after === null || after.length === 0
      ? raw('')
      : sql`WHERE (${raw(names.slice(0, after.length).join(', '))}) > (${listOf(after)})`;
  const sums = sumColumns.map((column) => `CAST(sum(${column}) AS TEXT) AS ${column}`);
  const by = (clause: string): Statement => raw(names.length === 0 ? '' : `${clause} BY ${names.join(', ')}`);
  return sql`SELECT ${raw([...names, ...sums, 'count(*) AS rows_read'].join(', '))}
    FROM (${joined(partsOf(query), ' UNION ALL ')}) AS parts ${behind}
    ${by('GROUP')} HAVING sum(requests) <> 0 OR sum(charge) <> 0 ${by('ORDER')} LIMIT ${limit}`;
}

/** What is read of each table: rollups of months, of days, and hours. */
function partsOf(query: SliceQuery): readonly Statement[] {
  const { plan, kinds, groups, slice, where } = query;
  const byKey = where.keyId !== undefined || slice.keys !== null;
  const filters: readonly Statement[] = [
    ...filtersOf(where).map(([dimension, value]) => sql`${raw(columnOf[dimension])} = ${value}`),
    ...(slice.keys === null ? [] : [sql`key_id >= ${slice.keys.from}`]),
    ...(slice.keys === null || slice.keys.upTo === null ? [] : [sql`key_id <= ${slice.keys.upTo}`]),
  ];
  const columns = [...groups.dimensions.map((one) => columnOf[one]), ...sumColumns].join(', ');
  const part = (table: string, start: string, conditions: readonly Statement[]): Statement => {
    const period = periodOf(groups.period, start, slice);
    return sql`SELECT ${raw(period === null ? '' : `${period} AS period_start, `)}${raw(columns)} FROM ${raw(table)}
      WHERE ${joined([...conditions, ...filters], ' AND ')}`;
  };
  const rolled = (period: RolledPeriod, starts: readonly number[]): readonly Statement[] => {
    const kind = kinds[period];
    if (kind === null || starts.length === 0) return [];
    const isKind = sql`kind = ${kind.name}`;
    return inRuns(starts, period, byKey).map((some) => part('usage_rollups', 'start', [isKind, some]));
  };
  const hours = hourConditions(plan.hours, byKey).map((some) => part('usage_hours', 'hour', [some]));
  const found = [...rolled('month', plan.months), ...rolled('day', plan.days), ...hours];
  // A union needs a part: this one finds nothing.
  return found.length > 0 ? found : [part('usage_hours', 'hour', [sql`hour < ${0}`])];
}

/** The expression for the beginning of the period that a row is in. A slice is of one month at most. */
function periodOf(period: UsagePeriod | null, start: string, { time }: UsageSlice): string | null {
  if (period === null) return null;
  if (period === 'hour') return start;
  if (period === 'day') return `${start} / ${dayMs} * ${dayMs}`;
  return `CAST(${monthOf(time.fromMs)} AS BIGINT)`;
}

/** Conditions that find some periods: one by one where rows of some keys are read, or as runs of neighbours. */
function inRuns(starts: readonly number[], period: RolledPeriod, byKey: boolean): readonly Statement[] {
  if (byKey && starts.length <= maxNamed) return [sql`start IN (${listOf(starts)})`];
  const runs: { from: number; to: number }[] = [];
  for (const start of starts) {
    const end = endOfPeriod(period, start);
    const last = runs.at(-1);
    if (last?.to === start) last.to = end;
    else runs.push({ from: start, to: end });
  }
  return runs.map(({ from, to }) => sql`start >= ${from} AND start < ${to}`);
}

function hourConditions(ranges: readonly TimeRange[], byKey: boolean): readonly Statement[] {
  if (ranges.length > 0 && byKey && countHours(ranges) <= maxNamed) {
    return [sql`hour IN (${listOf(ranges.flatMap(hoursOf))})`];
  }
  return ranges.map(({ fromMs, toMs }) => sql`hour >= ${fromMs} AND hour < ${toMs}`);
}

function hoursOf({ fromMs, toMs }: TimeRange): readonly number[] {
  return Array.from({ length: countHours([{ fromMs, toMs }]) }, (_, at) => fromMs + at * hourMs);
}

/** The filters of a query, with the values as they are stored: an empty text stands for none. */
function filtersOf({
  keyId,
  group,
  tag,
  ...names
}: UsageFilter): readonly (readonly [UsageDimension, string])[] {
  const values = { ...names, key: keyId, group: group === null ? '' : group, tag: tag === null ? '' : tag };
  return usageDimensions.flatMap((dimension) => {
    const value = values[dimension];
    return value === undefined ? [] : [[dimension, value] as const];
  });
}

/** The first hour behind some number of rows; no row if there are fewer. */
export function selectHourBehind({ fromMs, toMs }: TimeRange, rows: number): Statement {
  return sql`SELECT hour AS start FROM usage_hours WHERE hour >= ${fromMs} AND hour < ${toMs} ORDER BY hour LIMIT 1 OFFSET ${rows}`;
}

/** The first rolled day or month of a kind behind some number of rows. */
export function selectRolledBehind(
  { name }: UsageKind,
  { fromMs, toMs }: TimeRange,
  rows: number,
): Statement {
  return sql`SELECT start FROM usage_rollups WHERE kind = ${name} AND start >= ${fromMs} AND start < ${toMs}
    ORDER BY start LIMIT 1 OFFSET ${rows}`;
}

/** The last one of the next keys. */
export function selectKeyBehind(after: string, keys: number): Statement {
  return sql`SELECT key_id FROM accounts WHERE key_id > ${after} ORDER BY key_id LIMIT 1 OFFSET ${keys - 1}`;
}

/** A row of `selectSlice` as the values of its groups. */
export function groupValuesOf(row: Row, { period, dimensions }: OrderedGroups): GroupValues {
  const texts = dimensions.map((one) => String(row[columnOf[one]]));
  return period === null ? texts : [Number(row['period_start']), ...texts];
}

/** A row of `selectSlice`. Throws a `RangeError` for a sum that a number does not hold exactly. */
export function readUsageRow(row: Row, { period, dimensions }: OrderedGroups): UsageRow {
  const text = (dimension: UsageDimension): string => String(row[columnOf[dimension]]);
  return {
    ...(period === null ? {} : { startMs: Number(row['period_start']) }),
    ...(dimensions.includes('key') ? { keyId: text('key') } : {}),
    ...(dimensions.includes('group') ? { group: text('group') || null } : {}),
    ...(dimensions.includes('model') ? { model: text('model') } : {}),
    ...(dimensions.includes('upstream') ? { upstream: text('upstream') } : {}),
    ...(dimensions.includes('outcome') ? { outcome: text('outcome') as Outcome | '' } : {}),
    ...(dimensions.includes('tag') ? { tag: text('tag') || null } : {}),
    requests: exact(row['requests']),
    inputTokens: exact(row['input_tokens']),
    cachedInputTokens: exact(row['cached_input_tokens']),
    cacheWriteTokens: exact(row['cache_write_tokens']),
    outputTokens: exact(row['output_tokens']),
    reasoningTokens: exact(row['reasoning_tokens']),
    chargeNanos: BigInt(String(row['charge'])),
  };
}

function exact(value: SqlValue | undefined): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number))
    throw new RangeError(`a sum of usage is too large to be exact: ${value}`);
  return number;
}

/** All times of which there can be usage. */
const always: TimeRange = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER };

const byKey = new Set(['key'] as const);

export const selectWholeExtent: readonly Statement[] = selectExtent(always);

/** What some keys ever used. It belongs to the extent that was read at the same moment. */
export function selectKeyUsage(extent: UsageExtent, keys: KeyRange): Statement {
  const kinds = { day: smallestKind('day', byKey), month: smallestKind('month', byKey) };
  return selectSlice({
    groups: { period: null, dimensions: ['key'] },
    where: {},
    plan: planUsage(always, extent, kinds),
    kinds,
    slice: { time: always, keys },
    after: null,
    limit: Number.MAX_SAFE_INTEGER,
  });
}

/** What these keys were charged, in nano-USD, by their ids. */
export function readKeyUsage(rows: readonly Row[]): ReadonlyMap<string, number> {
  return new Map(rows.map((row) => [String(row['key_id']), Number(row['charge'])]));
}

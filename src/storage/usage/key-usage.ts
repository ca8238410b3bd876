import type { Results, Row, Statement } from '../engine.ts';
import { planUsage, readPeriods, selectPeriods } from './usage-plan.ts';
import type { RolledPeriods, TimeRange } from './usage-plan.ts';
import { firstRolledMs, monthOf, smallestKind } from './usage-kinds.ts';
import { selectSlice } from './usage-statements.ts';
import type { KeyRange } from './usage-statements.ts';

/** All times of which there can be usage. */
const always: TimeRange = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER };

const byKey = new Set(['key'] as const);

/** The months of which there is usage, and which periods are rolled up. */
export interface UsageExtent {
  readonly months: TimeRange;
  readonly periods: RolledPeriods;
  /** It as one text, by which two reads are compared. */
  readonly version: string;
}

/** The statements whose results are an extent. */
export const selectExtent: readonly Statement[] = [
  selectPeriods(always),
  {
    sql: `SELECT (SELECT hour FROM usage_hours WHERE hour >= ? ORDER BY hour LIMIT 1) AS first,
            (SELECT hour FROM usage_hours WHERE hour >= ? ORDER BY hour DESC LIMIT 1) AS last`,
    values: [firstRolledMs, firstRolledMs],
  },
];

/** What `selectExtent` found. */
export function readExtent([states = [], [ends] = []]: Results): UsageExtent {
  const [first, last] = [Number(ends?.['first'] ?? 0), Number(ends?.['last'] ?? 0)];
  const fromMs = Math.max(firstRolledMs, monthOf(first));
  const months = { fromMs, toMs: Math.max(fromMs, monthOf(last, 1)) };
  const periods = readPeriods(states);
  return { months, periods, version: `${months.fromMs}-${months.toMs};${periods.version}` };
}

/**
 * What some keys ever used. It belongs to the extent that was read at the same moment. Its times end with the extent, so that
 * hours can be named: a range of them would be read with those of all other keys.
 */
export function selectKeyUsage({ months, periods }: UsageExtent, keys: KeyRange): Statement {
  const kinds = { day: smallestKind('day', byKey), month: smallestKind('month', byKey) };
  const plan = planUsage(months, periods, kinds);
  return selectSlice({
    groups: { period: null, dimensions: ['key'] },
    where: {},
    plan: { ...plan, hours: [{ fromMs: always.fromMs, toMs: firstRolledMs }, ...plan.hours] },
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

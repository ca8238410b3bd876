import { readPages } from '../../api/admin-api.ts';
import { useLoaded } from '../../api/use-loaded.ts';
import type { Asked } from '../../api/use-loaded.ts';
import { maxSeries } from '../../widgets/chart.ts';
import { groups, sortGroups } from './groups.ts';
import type { UsageRow } from './groups.ts';
import type { TimeRange } from './time-range.ts';
import { filterParameters } from './usage-query.ts';
import type { UsageQuery } from './usage-query.ts';

/** How many pages of 1,000 groups are read. */
const maxPages = 10;

/** How many groups have a colour of their own in the chart; all others share the last one. */
const maxParts = maxSeries - 1;

export interface Totals {
  /** All requests; `null` if there are none. */
  readonly all: UsageRow | null;
  readonly groups: readonly UsageRow[];
  /** Whether there are more groups than those that were read. */
  readonly hasMore: boolean;
}

/** The sums of some groups and of all requests, by hours or days. */
export interface Course {
  readonly all: readonly UsageRow[];
  readonly parts: readonly { readonly group: UsageRow; readonly rows: readonly UsageRow[] }[];
}

/** Reads the sums of each group, and of all. */
export function useTotals({ by, filters }: UsageQuery, range: TimeRange | null): Asked<Totals> {
  const where = { ...filterParameters(filters), from: range?.from ?? null, to: range?.to ?? null };
  const name = range === null ? null : JSON.stringify([by, where]);
  return useLoaded(name, async (signal) => {
    const [all, each] = await Promise.all([
      readUsage({ ...where }, signal),
      readUsage({ ...where, by }, signal),
    ]);
    return { all: all.rows[0] ?? null, groups: each.rows, hasMore: each.next !== null };
  });
}

/** Reads the course of the groups with the most, and of all requests: of thousands of groups only some. */
export function useCourse(
  { by, show, filters }: UsageQuery,
  range: TimeRange | null,
  totals: Totals | null,
): Asked<Course> {
  const found = groups[by];
  const top = sortGroups(totals?.groups ?? [], show)
    .slice(0, maxParts)
    .filter((row) => found.valueOf(row) !== null);
  const where = { ...filterParameters(filters), from: range?.from ?? null, to: range?.to ?? null };
  const period = range?.period ?? 'hour';
  const name = top.length === 0 ? null : JSON.stringify([by, where, period, top.map(found.valueOf)]);
  return useLoaded(name, async (signal) => {
    const read = async (filter: object): Promise<readonly UsageRow[]> =>
      (await readUsage({ ...where, ...filter, by: period }, signal)).rows;
    const [all, ...parts] = await Promise.all([
      read({}),
      ...top.map((row) => read(filterParameters({ ...filters, [by]: found.valueOf(row) }))),
    ]);
    return { all, parts: top.map((group, index) => ({ group, rows: parts[index] ?? [] })) };
  });
}

function readUsage(parameters: Readonly<Record<string, string | null>>, signal: AbortSignal) {
  return readPages<UsageRow>('usage', parameters, { cursor: 'after', maxPages, signal });
}

import { linkTo } from '../../route.ts';
import { groupNames, measureNames, none } from './groups.ts';
import type { GroupName, MeasureName } from './groups.ts';
import { isDay, rangeNames } from './time-range.ts';
import type { Days, RangeName } from './time-range.ts';

/** Values that requests have; `null` where any may be. */
export type Filters = Readonly<Record<GroupName, string | null>>;

/** What requests are chosen by beside those: parameters of the admin API, whose sums have none of them. */
const figureNames = ['cause', 'status', 'min_duration_ms', 'min_amount'] as const;

export type RecordFilters = Filters & Readonly<Record<(typeof figureNames)[number], string | null>>;

/** What the sums are asked for, as the address has it. */
export interface UsageQuery {
  readonly range: RangeName;
  /** The days of the range `days`. */
  readonly days: Days | null;
  readonly by: GroupName;
  readonly show: MeasureName;
  readonly filters: Filters;
}

/** Reads the filters of an address. */
function readFilters(search: URLSearchParams): Filters {
  return Object.fromEntries(groupNames.map((name) => [name, search.get(name)])) as Filters;
}

/** Reads the filters of requests in an address. */
export function readRecordFilters(search: URLSearchParams): RecordFilters {
  const figures = Object.fromEntries(figureNames.map((name) => [name, search.get(name)]));
  return { ...readFilters(search), ...figures } as RecordFilters;
}

/** The filters as parameters of the admin API. */
export function filterParameters<Given extends Filters>(filters: Given): Given {
  const { group, tag } = filters;
  return { ...filters, group: group === none ? '' : group, tag: tag === none ? '' : tag };
}

/** Reads an address; what it lacks, and what it does not understand, is the default. */
export function readUsageQuery(search: URLSearchParams): UsageQuery {
  const [first, last] = [search.get('first'), search.get('last')];
  return {
    range: among(rangeNames, search.get('range')),
    days: isDay(first) && isDay(last) ? { first, last } : null,
    by: among(groupNames, search.get('by')),
    show: among(measureNames, search.get('show')),
    filters: readFilters(search),
  };
}

/** The link to the sums; defaults are left out of it. */
export function usageLink({ range, days, by, show, filters }: UsageQuery): string {
  return linkTo('usage', null, {
    range: range === rangeNames[0] ? null : range,
    first: range === 'days' ? (days?.first ?? null) : null,
    last: range === 'days' ? (days?.last ?? null) : null,
    by: by === groupNames[0] ? null : by,
    show: show === measureNames[0] ? null : show,
    ...filters,
  });
}

/** The link to the requests that filters leave, between two times in ISO 8601. */
export function recordsLink(
  filters: Partial<RecordFilters>,
  { from, to }: { readonly from: string | null; readonly to: string | null },
  before: string | null = null,
): string {
  return linkTo('usage', 'records', { ...filters, from, to, before });
}

function among<Name extends string>(names: readonly [Name, ...Name[]], given: string | null): Name {
  return names.find((name) => name === given) ?? names[0];
}

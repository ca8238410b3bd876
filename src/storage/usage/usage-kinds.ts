import { usageDimensions } from '../../domain/ports/usage.ts';
import type { UsageDimension, UsagePeriod } from '../../domain/ports/usage.ts';
import { dayMs } from '../../shared/duration.ts';
import type { Row } from '../engine.ts';

export const hourMs = 3_600_000;

/** Hours from here on are rolled up: those before are of a clock that was not set. */
export const firstRolledMs = 24 * hourMs;

/** The column of each dimension. */
export const columnOf: Readonly<Record<UsageDimension, string>> = {
  key: 'key_id',
  group: 'group_name',
  model: 'model',
  upstream: 'upstream',
  outcome: 'outcome',
  tag: 'tag',
};

/** The columns that are summed, in their order in results. */
export const sumColumns = [
  'requests',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'charge',
] as const;

/** The periods of which there are rollups. */
export type RolledPeriod = 'day' | 'month';

/** Sums by some dimensions, of days or of months. */
export interface UsageKind {
  /** Its name in the table. */
  readonly name: string;
  readonly dimensions: readonly UsageDimension[];
  /** About how many rows of one key there are in one period. */
  readonly rowsPerKey: number;
}

function kind(period: RolledPeriod, dimensions: readonly UsageDimension[], rowsPerKey: number): UsageKind {
  return { name: `${period}:${dimensions.join(',')}`, dimensions, rowsPerKey };
}

const withoutKey: readonly UsageDimension[] = ['group', 'model', 'upstream', 'outcome', 'tag'];

/**
 * What days and months are rolled up by, from the fewest rows to the most. Days are not rolled up by all dimensions: those
 * would be about as many rows as those of their hours. Where there is a key, its group adds hardly any: keys seldom change it.
 */
export const rolledKinds: Readonly<Record<RolledPeriod, readonly UsageKind[]>> = {
  day: [
    kind('day', [], 1),
    kind('day', ['model'], 1),
    kind('day', withoutKey, 1),
    kind('day', ['key', 'group'], 1),
    kind('day', ['key', 'group', 'model'], 2),
  ],
  month: [
    kind('month', [], 1),
    kind('month', ['model'], 1),
    kind('month', withoutKey, 1),
    kind('month', ['key', 'group'], 1),
    kind('month', ['key', 'group', 'model'], 4),
    kind('month', usageDimensions, 12),
  ],
};

/** The smallest kind of a period that has some dimensions; `null` if only hours have them. */
export function smallestKind(period: RolledPeriod, needed: ReadonlySet<UsageDimension>): UsageKind | null {
  const has = ({ dimensions }: UsageKind): boolean => [...needed].every((one) => dimensions.includes(one));
  return rolledKinds[period].find(has) ?? null;
}

/** When a period that begins at a time ends, in milliseconds since 1970. */
export function endOfPeriod(period: UsagePeriod, startMs: number): number {
  if (period === 'month') return monthOf(startMs, 1);
  return startMs + (period === 'day' ? dayMs : hourMs);
}

/** The beginnings of the days or months that are in a state, of the rows of all. */
export function startsOf(rows: readonly Row[], period: RolledPeriod, state: string): readonly number[] {
  return rows
    .filter((row) => row['period'] === period && row['state'] === state)
    .map((row) => Number(row['start']));
}

/** The beginning of the calendar month, in UTC, in which a time is, or of one that many months later. */
export function monthOf(atMs: number, later = 0): number {
  const at = new Date(atMs);
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + later);
}

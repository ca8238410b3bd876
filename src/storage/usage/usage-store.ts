import { maxUsageRows } from '../../domain/ports/usage.ts';
import type { Usage, UsageFilter, UsagePeriod, UsageQuery, UsageRow } from '../../domain/ports/usage.ts';
import { digest } from '../../shared/digest.ts';
import { dayMs, dayOf } from '../../shared/duration.ts';
import { parseJson } from '../../shared/parse-json.ts';
import type { Engine, Row } from '../engine.ts';
import { endOfPeriod, hourMs, monthOf, smallestKind } from './usage-kinds.ts';
import { countHours, firstUnrolled, planUsage, readExtent, selectExtent } from './usage-plan.ts';
import type { TimeRange, UsagePlan } from './usage-plan.ts';
import {
  groupValuesOf,
  neededDimensions,
  orderGroups,
  readUsageRow,
  selectHourBehind,
  selectKeyBehind,
  selectRolledBehind,
  selectSlice,
} from './usage-statements.ts';
import type { GroupValues, KeyRange, OrderedGroups, SliceQuery, UsageSlice } from './usage-statements.ts';

/** How much is read at once. */
interface UsageReadLimits {
  /** About how many rows a slice is read from: some milliseconds of the database. */
  readonly rowsPerSlice: number;
  /** How many keys a slice has at least, where keys are cut. */
  readonly leastKeys: number;
}

const readLimits: UsageReadLimits = { rowsPerSlice: 6_000, leastKeys: 16 };

/** How many slices of about so many rows a page is read from at most; filters may leave none of their rows. */
const maxFullSlices = 3;

/** How many slices of time or keys a page is read from at most. */
const maxSlices = 40;

/** How many hours or rolled days of one key are read at once. */
const startsOfKey = 1_000;

/** In which share of days and hours a key has usage: an estimate, by which keys are cut. */
const activeDays = 0.5;
const activeHours = 0.1;

/** How often a slice is read again whose days are rolled up meanwhile. */
const maxRepeats = 10;

/** What stays the same for all slices of a query. */
interface Asked {
  readonly groups: OrderedGroups;
  readonly where: UsageFilter;
  readonly kinds: SliceQuery['kinds'];
  readonly range: TimeRange;
  readonly limits: UsageReadLimits;
}

/** A slice, and what was read of it. */
interface ReadSlice {
  readonly rows: readonly Row[];
  /** What the next slice begins behind; `null` if this is the last one. */
  readonly end: GroupValues | null;
  /** Whether it ended where its rows became too many, rather than with all that was asked for. */
  readonly isFull: boolean;
}

/** Reads usage from its sums, over any engine. */
export function createUsage(engine: Pick<Engine, 'read'>, limits = readLimits): Usage {
  return {
    async usage(query: UsageQuery) {
      const { fromMs, toMs, where, limit, after } = query;
      const groups = orderGroups(query.by);
      const mark = markOf(query, groups);
      let place = after === null ? null : readUsageCursor(after, mark, groups);
      if (after !== null && place === null) return null;
      const needed = neededDimensions(groups, where);
      const kinds = {
        month: groups.period === null || groups.period === 'month' ? smallestKind('month', needed) : null,
        day: groups.period === 'hour' ? null : smallestKind('day', needed),
      };
      const asked: Asked = { groups, where, kinds, range: { fromMs, toMs }, limits };
      const rows: UsageRow[] = [];
      let [rowsRead, fullSlices] = [0, 0];
      for (let slices = 0; slices < maxSlices; slices++) {
        const wanted = limit - rows.length;
        const { rows: found, end, isFull } = await readSlice(engine, asked, place, wanted + 1);
        const taken = found.slice(0, wanted);
        rows.push(...taken.map((row) => readUsageRow(row, groups)));
        for (const row of taken) rowsRead += Number(row['rows_read']);
        const last = taken.at(-1);
        if (found.length > wanted && last !== undefined)
          return { rows, next: writeUsageCursor(mark, groupValuesOf(last, groups)) };
        if (end === null) return { rows, next: null };
        place = end;
        if (isFull) fullSlices++;
        if (rows.length === limit || rowsRead >= limits.rowsPerSlice || fullSlices === maxFullSlices) break;
      }
      return { rows, next: place === null ? null : writeUsageCursor(mark, place) };
    },
  };
}

/** Reads the next slice behind a place. */
async function readSlice(
  engine: Pick<Engine, 'read'>,
  asked: Asked,
  place: GroupValues | null,
  limit: number,
): Promise<ReadSlice> {
  const { groups, where, kinds } = asked;
  const rest = await withoutEmptyBeginning(engine, asked, restOf(asked, place));
  if (rest === null) return { rows: [], end: null, isFull: false };
  for (let repeats = 0; repeats < maxRepeats; repeats++) {
    const { time, isFull, isOver } = await cutTime(engine, asked, rest);
    const extent = readExtent(await engine.read(selectExtent(time)));
    const plan = planUsage(time, extent, kinds);
    const isCut = groups.dimensions.includes('key') && where.keyId === undefined && isOver;
    const slice = { time, keys: isCut ? await cutKeys(engine, asked, plan, time, place) : null };
    // One read is one snapshot: the sums belong to the plan only if what there is is still what it was made for.
    const [rows = [], ...now] = await engine.read([
      selectSlice({ groups, where, kinds, plan, slice, after: place, limit }),
      ...selectExtent(time),
    ]);
    if (readExtent(now).version === extent.version)
      return { rows, end: endOf(asked, slice, rest), isFull: isFull || slice.keys !== null };
  }
  throw new Error('usage is rolled up faster than it can be read: ask again later');
}

/** What is left of the time behind a place. */
function restOf({ groups: { period, dimensions }, range }: Asked, place: GroupValues | null): TimeRange {
  if (period === null || place === null) return range;
  const start = Number(place[0]);
  // A place without further groups stands for all rows of its period.
  const isWhole = place.length === 1 || dimensions.length === 0;
  return { fromMs: Math.max(range.fromMs, isWhole ? endOfPeriod(period, start) : start), toMs: range.toMs };
}

/**
 * A time from its first period with usage on; `null` without any. A page would otherwise end before a time in which there
 * is something, as when all time since 1970 is asked for.
 */
async function withoutEmptyBeginning(
  engine: Pick<Engine, 'read'>,
  { groups: { period } }: Asked,
  rest: TimeRange,
): Promise<TimeRange | null> {
  if (rest.fromMs >= rest.toMs) return null;
  if (period === null) return rest;
  const [[first] = []] = await engine.read([selectHourBehind(rest, 0)]);
  if (first === undefined) return null;
  return { ...rest, fromMs: Math.max(rest.fromMs, startOfPeriod(period, Number(first['start']))) };
}

/** The place behind a slice; `null` behind the last one. */
function endOf(
  { groups: { period } }: Asked,
  { time, keys }: UsageSlice,
  rest: TimeRange,
): GroupValues | null {
  if (keys !== null && keys.upTo !== null)
    return period === null ? [keys.upTo] : [startOfPeriod(period, time.fromMs), keys.upTo];
  if (period === null || time.toMs >= rest.toMs) return null;
  return [startOfPeriod(period, time.toMs - 1)];
}

function startOfPeriod(period: UsagePeriod, atMs: number): number {
  if (period === 'month') return monthOf(atMs);
  return period === 'day' ? dayOf(atMs) : atMs - (atMs % hourMs);
}

/** The first part of a time that is read at once: whole periods, as many as have about as many rows as a slice. */
async function cutTime(
  engine: Pick<Engine, 'read'>,
  { groups: { period }, where, kinds, limits: { rowsPerSlice } }: Asked,
  rest: TimeRange,
): Promise<{
  readonly time: TimeRange;
  /** Whether it ends where its rows become too many. */
  readonly isFull: boolean;
  /** Whether it may still have more rows than a slice, so that its keys are to be cut, too. */
  readonly isOver: boolean;
}> {
  const { fromMs, toMs } = rest;
  if (period === null) return { time: rest, isFull: false, isOver: true };
  const upTo = (endMs: number): TimeRange => ({ fromMs, toMs: Math.min(toMs, endMs) });
  const firstEnd = endOfPeriod(period, startOfPeriod(period, fromMs));
  if (period === 'month') return { time: upTo(firstEnd), isFull: false, isOver: true };
  if (where.keyId !== undefined) {
    // The rows of a key are found by the index, those of each hour or rolled day.
    const stepMs = kinds.day === null ? hourMs : dayMs;
    const endMs = startOfPeriod(period, fromMs + startsOfKey * stepMs);
    return { time: upTo(Math.max(firstEnd, endMs)), isFull: false, isOver: false };
  }
  const extent = readExtent(kinds.day === null ? [] : await engine.read(selectExtent(rest)));
  const unrolledMs = firstUnrolled(rest, extent);
  const found = await engine.read([
    selectHourBehind({ fromMs: unrolledMs, toMs }, rowsPerSlice),
    ...(kinds.day === null ? [] : [selectRolledBehind(kinds.day, rest, rowsPerSlice)]),
  ]);
  const ends = found.flat().map((row) => startOfPeriod(period, Number(row['start'])));
  const endMs = Math.min(toMs, ...ends);
  return {
    time: upTo(Math.max(firstEnd, endMs)),
    isFull: endMs < toMs,
    isOver: endMs < Math.min(firstEnd, toMs),
  };
}

/** The keys that are read at once, behind a place or from its key on, of which there may be more. */
async function cutKeys(
  engine: Pick<Engine, 'read'>,
  { groups: { period }, kinds, limits: { rowsPerSlice, leastKeys } }: Asked,
  { months, days, hours }: UsagePlan,
  { fromMs }: TimeRange,
  place: GroupValues | null,
): Promise<KeyRange> {
  const at = period === null ? 0 : 1;
  const isBegun = period === null || place?.[0] === startOfPeriod(period, fromMs);
  const from = isBegun && place !== null && place.length > at ? String(place[at]) : '';
  const rowsPerKey =
    months.length * (kinds.month?.rowsPerKey ?? 0) +
    days.length * (kinds.day?.rowsPerKey ?? 0) * activeDays +
    countHours(hours) * activeHours;
  const keys = Math.ceil(rowsPerSlice / Math.max(1, rowsPerKey));
  const [[last] = []] = await engine.read([
    selectKeyBehind(from, Math.min(maxUsageRows, Math.max(leastKeys, keys))),
  ]);
  return { from, upTo: last === undefined ? null : String(last['key_id']) };
}

/** How long a cursor may be, in characters: five names of the greatest length fit many times. */
const maxCharacters = 16_384;

/** How many digits of a hash say which query a cursor is of. */
const markLength = 12;

/** What tells the cursors of a query from those of another one, as of another key: behind those, rows would be missing. */
function markOf({ fromMs, toMs, where }: UsageQuery, groups: OrderedGroups): string {
  return digest(JSON.stringify([groups, where, fromMs, toMs])).slice(0, markLength);
}

/** Writes the groups behind which the next page begins as an opaque text. */
function writeUsageCursor(mark: string, values: GroupValues): string {
  return mark + Buffer.from(JSON.stringify(values)).toString('base64url');
}

/** Reads a cursor; `null` for a text that is none of a query with this mark and these groups. */
function readUsageCursor(
  cursor: string,
  mark: string,
  { period, dimensions }: OrderedGroups,
): GroupValues | null {
  if (cursor.length > maxCharacters || !cursor.startsWith(mark)) return null;
  const values = parseJson(Buffer.from(cursor.slice(mark.length), 'base64url').toString());
  const most = dimensions.length + (period === null ? 0 : 1);
  if (!Array.isArray(values) || values.length === 0 || values.length > most) return null;
  const isValid = values.every((value: unknown, at) =>
    at === 0 && period !== null
      ? Number.isSafeInteger(value)
      : typeof value === 'string' && !value.includes('\0'),
  );
  return isValid ? (values as GroupValues) : null;
}

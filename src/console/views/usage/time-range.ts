/** The times that can be chosen, in days of the viewer. */
export const rangeNames = ['today', 'yesterday', '7d', '30d', 'month', 'days'] as const;

export type RangeName = (typeof rangeNames)[number];

export const rangeTitles: Readonly<Record<RangeName, string>> = {
  today: 'Today',
  yesterday: 'Yesterday',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  month: 'This month',
  days: 'Other days',
};

/** The first and the last of some days, each as `2030-01-31`. */
export interface Days {
  readonly first: string;
  readonly last: string;
}

/** A time for which usage is asked, and how it is divided. */
export interface TimeRange extends Days {
  /** In ISO 8601, on whole hours of UTC: usage is added up by those. */
  readonly from: string;
  readonly to: string;
  /** What the gateway is asked to group by. */
  readonly period: 'hour' | 'day';
  readonly unit: 'hour' | 'day';
  /** When each hour or day begins, in milliseconds since 1970. */
  readonly starts: readonly number[];
  readonly endMs: number;
  /** Why times are not exactly those that were chosen. */
  readonly note: string | null;
}

const hourMs = 3_600_000;
const dayMs = 86_400_000;

/** Up to how many days are divided into hours, and up to how many their hours are added up to days of the viewer. */
const maxHourlyDays = 2;
const maxLocalDays = 14;

/** The days that a name stands for. `days` stands for those that are given, or today. */
export function daysOf(name: RangeName, given: Days | null, nowMs: number): Days {
  const today = localDay(nowMs);
  if (name === 'days') return given ?? { first: today, last: today };
  if (name === 'yesterday') return { first: addDays(today, -1), last: addDays(today, -1) };
  const first = {
    today,
    '7d': addDays(today, -6),
    '30d': addDays(today, -29),
    month: `${today.slice(0, 8)}01`,
  }[name];
  return { first, last: today };
}

/** How usage of some days is asked for: by their hours, or by days of UTC where that would be too many. */
export function timeRange({ first, last }: Days, nowMs: number): TimeRange {
  const count = (utcStart(last) - utcStart(first)) / dayMs + 1;
  if (count > maxLocalDays) return utcRange({ first, last }, nowMs);
  const days = Array.from({ length: count }, (_none, index) => addDays(first, index));
  const endMs = wholeHour(localStart(addDays(last, 1)));
  const dayStarts = days.map((day) => wholeHour(localStart(day)));
  const unit = count <= maxHourlyDays ? 'hour' : 'day';
  const fromMs = dayStarts[0] ?? endMs;
  const isOff = days.some((day) => localStart(day) % hourMs !== 0);
  return {
    first,
    last,
    from: isoOf(fromMs),
    to: isoOf(endMs),
    period: 'hour',
    unit,
    starts: unit === 'hour' ? stepsBetween(fromMs, endMs, hourMs) : dayStarts,
    endMs,
    note: isOff
      ? 'Usage is added up by whole hours of UTC. Your zone is off them, so each day begins up to an hour early.'
      : null,
  };
}

/**
 * As many days before, to which usage is compared, and no more of them than is over of the days themselves: half a day is not
 * compared with a whole one. `null` where nothing of them is over, or usage can't be asked for what was before.
 */
export function rangeBefore(range: TimeRange, nowMs: number): TimeRange | null {
  const count = (utcStart(range.last) - utcStart(range.first)) / dayMs + 1;
  const before = timeRange({ first: addDays(range.first, -count), last: addDays(range.last, -count) }, nowMs);
  const overMs = Math.ceil(nowMs / hourMs) * hourMs - Date.parse(range.from);
  const endMs = Math.min(before.endMs, Date.parse(before.from) + overMs);
  return overMs <= 0 || Date.parse(before.from) < 0 ? null : { ...before, to: isoOf(endMs), endMs };
}

function utcRange({ first, last }: Days, nowMs: number): TimeRange {
  // West of Greenwich today's evening is tomorrow in UTC, and belongs to it.
  const utcToday = isoOf(nowMs).slice(0, 10);
  const lastUtc = last === localDay(nowMs) && utcToday > last ? utcToday : last;
  const fromMs = utcStart(first);
  const endMs = utcStart(addDays(lastUtc, 1));
  return {
    first,
    last: lastUtc,
    from: isoOf(fromMs),
    to: isoOf(endMs),
    period: 'day',
    unit: 'day',
    starts: stepsBetween(fromMs, endMs, dayMs),
    endMs,
    note: `Of more than ${maxLocalDays} days, each begins at midnight in UTC.`,
  };
}

const dayForm = /^(19[7-9]|[2-9]\d\d)\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
const lastDay = '9999-12-31';

/** Whether a text is a day, as `2030-01-31`, that usage can be asked for. */
export function isDay(text: string | null): text is string {
  // A month is read with days that it does not have, and the day behind the last one has a year of five digits.
  return text !== null && dayForm.test(text) && addDays(text, 0) === text && text !== lastDay;
}

/** The place of the hour or day that a moment is in. */
export function placeOf(starts: readonly number[], momentMs: number): number {
  return starts.findLastIndex((start) => start <= momentMs);
}

/** The day at a place, counted from the first day on. */
export function dayAt({ first }: Days, place: number): string {
  return addDays(first, place);
}

function stepsBetween(fromMs: number, endMs: number, stepMs: number): readonly number[] {
  return Array.from(
    { length: Math.ceil((endMs - fromMs) / stepMs) },
    (_none, index) => fromMs + index * stepMs,
  );
}

function partsOf(day: string): readonly [number, number, number] {
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
  return [year, month - 1, date];
}

/** Midnight of a day in the zone of the viewer. */
function localStart(day: string): number {
  return new Date(...partsOf(day)).getTime();
}

function utcStart(day: string): number {
  return Date.UTC(...partsOf(day));
}

function addDays(day: string, count: number): string {
  return isoOf(utcStart(day) + count * dayMs).slice(0, 10);
}

function localDay(momentMs: number): string {
  const moment = new Date(momentMs);
  return isoOf(Date.UTC(moment.getFullYear(), moment.getMonth(), moment.getDate())).slice(0, 10);
}

function wholeHour(momentMs: number): number {
  return Math.floor(momentMs / hourMs) * hourMs;
}

function isoOf(momentMs: number): string {
  return new Date(momentMs).toISOString();
}

const dayFormat = new Intl.DateTimeFormat('en', {
  weekday: 'short',
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  timeZone: 'UTC',
});

/** A day such as `2030-01-31`, with its name. */
export function formatDay(text: string): string {
  return dayFormat.format(Date.parse(text));
}

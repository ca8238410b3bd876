/** The periods after which a budget is full again. */
export const budgetPeriods = ['day', 'week', 'month'] as const;

export type BudgetPeriod = (typeof budgetPeriods)[number];

/** From when until when a period lasts, in milliseconds since 1970; its end is the start of the next one. */
export interface PeriodBounds {
  readonly startMs: number;
  readonly endMs: number;
}

const dayMs = 86_400_000;

/** How far the clocks of a time zone may differ from UTC, in milliseconds: no zone does by more than 26 hours. */
const furthestOffsetMs = 26 * 3_600_000;

/** For how many zones the last periods and the formats are kept; for more, all of them are made again. */
const maxZonesKept = 1_000;

const formats = new Map<string, Intl.DateTimeFormat>();
const lastPeriods = new Map<string, PeriodBounds>();

/**
 * The period of the calendar in a time zone that a moment (milliseconds since 1970) is in. A day begins with its first moment,
 * which is not midnight where clocks go forward then, and has 23 to 25 hours where they change; weeks begin on Monday.
 * Periods follow each other without gaps, so every moment is in exactly one. Throws for an unknown zone.
 */
export function periodAt(atMs: number, period: BudgetPeriod, timeZone: string): PeriodBounds {
  const name = `${period} ${timeZone}`;
  const last = lastPeriods.get(name);
  if (last !== undefined && atMs >= last.startMs && atMs < last.endMs) return last;
  const found = findPeriod(atMs, period, timeZone);
  if (lastPeriods.size >= maxZonesKept) lastPeriods.clear();
  lastPeriods.set(name, found);
  return found;
}

function findPeriod(atMs: number, period: BudgetPeriod, timeZone: string): PeriodBounds {
  let first = firstDayOf(wallClockAt(atMs, timeZone), period);
  // Clocks that go back over midnight show a day again that has ended.
  if (atMs < startOfDay(first, timeZone)) first = firstDayOf(first - dayMs, period);
  let next = nextFirstDay(first, period);
  let endMs = startOfDay(next, timeZone);
  while (atMs >= endMs) {
    first = next;
    next = nextFirstDay(first, period);
    endMs = startOfDay(next, timeZone);
  }
  return { startMs: startOfDay(first, timeZone), endMs };
}

/** The midnight with which the period of a day begins; times of a calendar are milliseconds as if it were in UTC. */
function firstDayOf(wallMs: number, period: BudgetPeriod): number {
  const day = new Date(wallMs);
  const [year, month, date] = [day.getUTCFullYear(), day.getUTCMonth(), day.getUTCDate()];
  if (period === 'month') return Date.UTC(year, month, 1);
  if (period === 'day') return Date.UTC(year, month, date);
  const sinceMonday = (day.getUTCDay() + 6) % 7;
  return Date.UTC(year, month, date - sinceMonday);
}

function nextFirstDay(firstMs: number, period: BudgetPeriod): number {
  if (period === 'day') return firstMs + dayMs;
  if (period === 'week') return firstMs + 7 * dayMs;
  const first = new Date(firstMs);
  return Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 1);
}

/** The first moment at which the clocks of a zone have reached a midnight. */
function startOfDay(midnightMs: number, timeZone: string): number {
  let [before, reached] = [midnightMs - furthestOffsetMs, midnightMs + furthestOffsetMs];
  while (reached - before > 1) {
    const middle = Math.floor((before + reached) / 2);
    if (wallClockAt(middle, timeZone) < midnightMs) before = middle;
    else reached = middle;
  }
  return reached;
}

/** What the clocks of a zone show, as milliseconds since 1970 of clocks in UTC that show the same. */
function wallClockAt(atMs: number, timeZone: string): number {
  if (timeZone === 'UTC') return atMs;
  const shown: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(atMs)) shown[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = shown;
  const milliseconds = ((atMs % 1_000) + 1_000) % 1_000;
  return Date.UTC(year, month - 1, day, hour, minute, second) + milliseconds;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    if (formats.size >= maxZonesKept) formats.clear();
    formats.set(timeZone, format);
  }
  return format;
}

/** The periods after which a budget is full again. */
export const budgetPeriods = ['day', 'week', 'month'] as const;

export type BudgetPeriod = (typeof budgetPeriods)[number];

/** From when until when a period lasts, in milliseconds since 1970; its end is the start of the next one. */
export interface PeriodBounds {
  readonly startMs: number;
  readonly endMs: number;
}

/** How long each period is. */
const lengths: Readonly<Record<BudgetPeriod, Temporal.DurationLike>> = {
  day: { days: 1 },
  week: { weeks: 1 },
  month: { months: 1 },
};

/** For how many zones the last periods are kept; for more, all of them are found again. */
const maxZonesKept = 1_000;

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
  const startOf = (day: Temporal.PlainDate): number => day.toZonedDateTime(timeZone).epochMilliseconds;
  const today = Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(timeZone).toPlainDate();
  let first = firstDayOf(today, period);
  // Clocks that go back over midnight show a day again that has ended.
  while (atMs >= startOf(first.add(lengths[period]))) first = first.add(lengths[period]);
  return { startMs: startOf(first), endMs: startOf(first.add(lengths[period])) };
}

function firstDayOf(day: Temporal.PlainDate, period: BudgetPeriod): Temporal.PlainDate {
  if (period === 'month') return day.with({ day: 1 });
  return period === 'week' ? day.subtract({ days: day.dayOfWeek - 1 }) : day;
}

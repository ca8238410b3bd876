/** As much of `Temporal` as the tests use: its types are not in the compiler's library yet. */
interface PlainDate {
  readonly dayOfWeek: number;
  add(duration: object): PlainDate;
  subtract(duration: object): PlainDate;
  with(fields: object): PlainDate;
  toZonedDateTime(timeZone: string): { readonly epochMilliseconds: number };
}

interface TemporalLibrary {
  readonly Instant: {
    fromEpochMilliseconds(ms: number): {
      toZonedDateTimeISO(timeZone: string): { toPlainDate(): PlainDate };
    };
  };
}

const { Temporal } = globalThis as unknown as { readonly Temporal: TemporalLibrary };

/** The first moments of the period that a moment is in, and of the next one, by Node's own calendar; in milliseconds. */
export function referencePeriod(atMs: number, period: 'day' | 'week' | 'month', timeZone: string) {
  const date = Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(timeZone).toPlainDate();
  const first = {
    day: () => date,
    week: () => date.subtract({ days: date.dayOfWeek - 1 }),
    month: () => date.with({ day: 1 }),
  }[period]();
  const next = first.add({ day: { days: 1 }, week: { days: 7 }, month: { months: 1 } }[period]);
  const startOf = (day: PlainDate): number => day.toZonedDateTime(timeZone).epochMilliseconds;
  return { startMs: startOf(first), endMs: startOf(next) };
}

/** Time zones with clocks that change at midnight, by half an hour or never, and one that has left out a day. */
export const zones = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'America/Sao_Paulo',
  'America/Havana',
  'America/Santiago',
  'Africa/Cairo',
  'Asia/Beirut',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Pacific/Kiritimati',
] as const;

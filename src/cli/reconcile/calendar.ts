/** Offsets of time zones are whole quarters of an hour, in milliseconds. */
const quarterMs = 900_000;

/** The days of a time zone, written as `2030-01-31`. */
export interface Calendar {
  /** The day of an instant, in milliseconds since 1970. */
  dayOf(instantMs: number): string;
  /** When a day begins, in milliseconds since 1970. */
  startOf(day: string): number;
}

/** The calendar of a time zone such as `UTC` or `Europe/Berlin`. Throws if the zone is unknown. */
export function calendarOf(timeZone: string): Calendar {
  const dateAt = (instantMs: number): string => {
    const at = Temporal.Instant.fromEpochMilliseconds(instantMs).toZonedDateTimeISO(timeZone);
    return at.toPlainDate().toString();
  };
  try {
    dateAt(0);
  } catch {
    throw new Error(`--time-zone: ${timeZone} is no time zone: expected a name such as UTC or Europe/Berlin`);
  }
  // Records come in the order of time, so most of them lie in the same quarter of an hour as the one before.
  let [lastQuarter, lastDay] = [Number.NaN, ''];
  return {
    dayOf(instantMs) {
      const quarter = Math.floor(instantMs / quarterMs);
      if (quarter !== lastQuarter) [lastQuarter, lastDay] = [quarter, dateAt(quarter * quarterMs)];
      return lastDay;
    },
    startOf: (day) => Temporal.PlainDate.from(day).toZonedDateTime(timeZone).epochMilliseconds,
  };
}

/** The day after another one. */
export function nextDay(day: string): string {
  return Temporal.PlainDate.from(day).add({ days: 1 }).toString();
}

/** The day before another one. */
export function dayBefore(day: string): string {
  return Temporal.PlainDate.from(day).subtract({ days: 1 }).toString();
}

/** The last day that has a day after it in four digits of a year: days are compared as texts. */
const lastDay = '9999-12-30';

/** Reads a day such as `2030-01-31`, from 1970 on; `null` for anything else. */
export function parseDay(text: string): string | null {
  if (!/^\d{4}-\d\d-\d\d$/.test(text) || text < '1970' || text > lastDay) return null;
  try {
    return Temporal.PlainDate.from(text).toString();
  } catch {
    return null;
  }
}

/** A day without a time, which is the same day in every zone; or an instant. */
export type Moment =
  | { readonly kind: 'day'; readonly day: string }
  | { readonly kind: 'instant'; readonly ms: number };

/**
 * Reads the time of a row: a day, seconds since 1970, or ISO 8601 with or without an offset; without one it is in UTC. `null`
 * for anything else.
 */
export function parseMoment(value: unknown): Moment | null {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string') return null;
  if (/^\d{9,10}$/.test(text)) return { kind: 'instant', ms: Number(text) * 1_000 };
  const day = parseDay(text);
  if (day !== null) return { kind: 'day', day };
  const match = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(Z|UTC|[+-]\d\d:?\d\d)?$/.exec(text);
  if (match === null || parseDay(match[1] ?? '') === null) return null;
  const [, date = '', time = '', offset = 'Z'] = match;
  const zone = offset.replace('UTC', 'Z').replace(/^([+-]\d\d)(\d\d)$/, '$1:$2');
  const ms = Date.parse(`${date}T${time}${zone}`);
  return Number.isNaN(ms) ? null : { kind: 'instant', ms };
}

/** Longer than any period, in milliseconds. */
const longestMs = 33 * 86_400_000;

/** The Monday of the week of a day such as `2030-01-31`. */
const mondayOf = (day: string): string => {
  const date = new Date(day);
  date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
  return date.toISOString().slice(0, 10);
};

/** The names of a day's periods, which are in the order of time. */
const names = { day: (day: string) => day, week: mondayOf, month: (day: string) => day.slice(0, 7) };

const formats = new Map<string, Intl.DateTimeFormat>();

/** The day that the clocks of a zone show; Swedish dates are ISO dates. */
function dayAt(atMs: number, timeZone: string): string {
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat('sv-SE', { timeZone });
  formats.set(timeZone, format);
  return format.format(atMs);
}

/** The first moments of the period that a moment is in, and of the next one, as clocks show them; in milliseconds. */
export function referencePeriod(atMs: number, period: 'day' | 'week' | 'month', timeZone: string) {
  const nameAt = (ms: number): string => names[period](dayAt(ms, timeZone));
  const name = nameAt(atMs);
  const firstAfter = (before: number, after: number, isThere: (name: string) => boolean): number => {
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (isThere(nameAt(middle))) after = middle;
      else before = middle;
    }
    return after;
  };
  return {
    startMs: firstAfter(atMs - longestMs, atMs, (found) => found >= name),
    endMs: firstAfter(atMs, atMs + longestMs, (found) => found > name),
  };
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

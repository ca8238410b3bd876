const minuteMs = 60_000;

/** The length of a date and a time to the minute, as a browser's field has them: `2030-01-01T12:00`. */
const localLength = 16;

/** Milliseconds in the largest unit that needs no fraction, as the admin API reads them: `25s`, `1500ms`. */
export function writeDuration(milliseconds: number): string {
  const units = [
    ['h', 3_600_000],
    ['m', minuteMs],
    ['s', 1_000],
    ['ms', 1],
  ] as const;
  const fitting = units.find(([, size]) => milliseconds >= size && milliseconds % size === 0);
  return fitting === undefined ? '0s' : `${milliseconds / fitting[1]}${fitting[0]}`;
}

/** A time as a browser's field shows it, in the zone of the viewer. */
export function asLocal(iso: string | null): string {
  if (iso === null) return '';
  const time = new Date(iso);
  const shifted = new Date(time.getTime() - time.getTimezoneOffset() * minuteMs);
  return shifted.toISOString().slice(0, localLength);
}

/** A time of a browser's field as the admin API reads it; `null` for an empty field. */
export function asIso(local: string): string | null {
  if (local === '') return null;
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? local : time.toISOString();
}

/** The entries of a list: one a line, or between commas. */
export function entriesOf(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

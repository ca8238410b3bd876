import { parseMoment } from '../../shared/parse-moment.ts';

/** The longest `retry-after` of an upstream that counts, in milliseconds. */
const maxRetryAfterMs = 600_000;

/**
 * The pause that an answer asks for, in milliseconds: `retry-after-ms`, or `retry-after` in seconds or as a date, which is
 * taken relative to the answer's own `date`, as clocks differ. `valueOf` returns a header by its name in lower case. `null`
 * without one.
 */
export function readRetryAfter(valueOf: (name: string) => string | undefined): number | null {
  const milliseconds = numberIn(valueOf('retry-after-ms') ?? '');
  const value = Number.isFinite(milliseconds) ? milliseconds : untilEnd(valueOf);
  return Number.isFinite(value) && value >= 0 ? Math.min(value, maxRetryAfterMs) : null;
}

function untilEnd(valueOf: (name: string) => string | undefined): number {
  const text = valueOf('retry-after') ?? '';
  const seconds = numberIn(text);
  return Number.isNaN(seconds) ? untilDate(text, valueOf('date') ?? '') : seconds * 1_000;
}

/** A blank header is as if it were not there: it would be a pause of 0. */
function numberIn(text: string): number {
  return text.trim() === '' ? Number.NaN : Number(text);
}

/** The time from one moment to a later one; none where either is no date. A pause that is over already is one of 0. */
function untilDate(text: string, date: string): number {
  const [endMs, nowMs] = [parseMoment(text), parseMoment(date)];
  return endMs === null || nowMs === null ? Number.NaN : Math.max(0, endMs - nowMs);
}

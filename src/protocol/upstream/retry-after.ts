import { parseMoment } from '../../shared/parse-moment.ts';

/** The longest `retry-after` of an upstream that counts, in milliseconds. */
const maxRetryAfterMs = 600_000;

/** A number of seconds or milliseconds as HTTP writes it, or with a fraction. */
const plainNumber = /^\s*\d+(?:\.\d+)?\s*$/;

/** How a date begins, in HTTP's form or in that of RFC 3339: the engine takes numbers such as -5 for dates, too. */
const dateStart = /^\s*(?:[A-Za-z]{3}|\d{4}-)/;

/**
 * The pause that an answer asks for, in milliseconds: `retry-after-ms`, or `retry-after` in seconds or as a date, which is
 * taken relative to the answer's own `date`, as clocks differ. `valueOf` returns a header by its name in lower case. `null`
 * without one. What is no plain number is as if it were not there, so that it can't hide the other header.
 */
export function readRetryAfter(valueOf: (name: string) => string | undefined): number | null {
  const pauseMs = numberIn(valueOf('retry-after-ms') ?? '') ?? untilEnd(valueOf);
  return pauseMs === null ? null : Math.min(pauseMs, maxRetryAfterMs);
}

function untilEnd(valueOf: (name: string) => string | undefined): number | null {
  const text = valueOf('retry-after') ?? '';
  const seconds = numberIn(text);
  return seconds === null ? untilDate(text, valueOf('date') ?? '') : seconds * 1_000;
}

function numberIn(text: string): number | null {
  return plainNumber.test(text) ? Number(text) : null;
}

/** The time from one moment to a later one; none where either is no date. A pause that is over already is one of 0. */
function untilDate(text: string, date: string): number | null {
  if (!dateStart.test(text)) return null;
  const [endMs, nowMs] = [parseMoment(text), parseMoment(date)];
  return endMs === null || nowMs === null ? null : Math.max(0, endMs - nowMs);
}

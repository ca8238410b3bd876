/** The longest `retry-after` of an upstream that counts, in milliseconds. */
const maxRetryAfterMs = 600_000;

/**
 * The pause that an answer asks for, in milliseconds: `retry-after-ms`, or `retry-after` in seconds; a date is ignored,
 * because clocks differ. `valueOf` returns a header by its name in lower case. `null` without one.
 */
export function readRetryAfter(valueOf: (name: string) => string | undefined): number | null {
  const milliseconds = Number(valueOf('retry-after-ms') ?? Number.NaN);
  const value = Number.isFinite(milliseconds)
    ? milliseconds
    : Number(valueOf('retry-after') ?? Number.NaN) * 1_000;
  return Number.isFinite(value) && value >= 0 ? Math.min(value, maxRetryAfterMs) : null;
}

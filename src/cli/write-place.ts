/**
 * A place in line with the expected wait, as `place 3, ~14 s` or `place 3, ~2 min`. Estimates are off by a sixth and more, so
 * nothing below a second is written. `null` where no wait is known.
 */
export function writePlace(position: number, expectedMs: number | null): string {
  if (expectedMs === null) return `place ${position}`;
  const seconds = Math.max(1, Math.round(expectedMs / 1_000));
  return `place ${position}, ~${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`}`;
}

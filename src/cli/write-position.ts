/**
 * A position in a queue with the expected wait, as `position 3, ~14 s` or `position 3, ~2 min`. Estimates are off by a sixth and
 * more, so nothing below a second is written. `null` where no wait is known.
 */
export function writePosition(position: number, expectedMs: number | null): string {
  if (expectedMs === null) return `position ${position}`;
  const seconds = Math.max(1, Math.round(expectedMs / 1_000));
  return `position ${position}, ~${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`}`;
}

/** The length of a day in UTC, in milliseconds. */
export const dayMs = 86_400_000;

/** The beginning of the day, in UTC, in which a time is; both in milliseconds since 1970. */
export function dayOf(atMs: number): number {
  return Math.floor(atMs / dayMs) * dayMs;
}

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: dayMs } as const;

/** Reads `250ms`, `5s`, `10m`, `1h` or `2d` into milliseconds; `null` for anything else. */
export function parseDuration(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
  if (match === null) return null;
  return Math.round(Number(match[1]) * unitMs[match[2] as keyof typeof unitMs]);
}

/** Writes milliseconds in the largest unit that needs no fraction: `25s`, `1500ms`. */
export function formatDuration(durationMs: number): string {
  const units = Object.entries(unitMs).toReversed();
  const [unit, size] = units.find(([, each]) => durationMs % each === 0 && durationMs >= each) ?? ['s', 1];
  return `${durationMs / size}${unit}`;
}

/** Writes milliseconds as the `x-ratelimit-reset-*` headers do: `1s`, `250ms`, `6m0s`. */
export function formatResetDuration(durationMs: number): string {
  const milliseconds = Math.ceil(durationMs);
  if (milliseconds < 1_000) return `${milliseconds}ms`;
  const seconds = Math.ceil(milliseconds / 1_000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}

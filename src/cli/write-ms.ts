/** A duration as `312 ms` or `1.20 s`. */
export function writeMs(milliseconds: number): string {
  return milliseconds < 1_000
    ? `${Math.round(milliseconds)} ms`
    : `${(milliseconds / 1_000).toFixed(milliseconds < 100_000 ? 2 : 0)} s`;
}

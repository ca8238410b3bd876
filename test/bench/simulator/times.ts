/** When a request reached the simulated upstream, and when that wrote the first text of its answer. */
export interface UpstreamTimes {
  readonly arrivedMs: number;
  readonly textMs: number;
}

/** The machine's monotonic clock, in milliseconds. Unlike `performance.now()` all processes read the same time from it. */
export function machineMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/** Writes times as text that every proxy passes on as it is: plain words, which JSON does not escape. */
export function writeTimes({ arrivedMs, textMs }: UpstreamTimes): string {
  return `(arrived ${arrivedMs.toFixed(4)}, ${stampStart}${textMs.toFixed(4)}${stampEnd}`;
}

/** What comes before the time of a text's writing, and after it. */
export const stampStart = 'text ';
export const stampEnd = ')';

/** Writes when a text was written that is not the first, as `writeTimes` does for that one. */
export function writeStamp(textMs: number): string {
  return `(${stampStart}${textMs.toFixed(4)}${stampEnd}`;
}

/** Finds the times in a piece of an answer; null where there are none. */
export function readTimes(text: string): UpstreamTimes | null {
  const [, arrived, written] = /\(arrived ([\d.]+), text ([\d.]+)\)/.exec(text) ?? [];
  return arrived === undefined || written === undefined
    ? null
    : { arrivedMs: Number(arrived), textMs: Number(written) };
}

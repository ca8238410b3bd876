/** How much larger each bound of times is than the one before: a time is known to within 3 %. */
const growth = 1.05;

/** The longest time that is told apart from longer ones, in milliseconds. */
const longestMs = 3_600_000;

/** How many bounds there are; their numbers begin with 0. */
export const timeBounds = Math.ceil(Math.log(longestMs) / Math.log(growth)) + 1;

/** How many times are within each bound, and above the one before. Counts of several processes or intervals can be added. */
export type TimeCounts = Iterable<readonly [bound: number, times: number]>;

/** The number of the bound within which a time is, in milliseconds. */
export function boundOf(timeMs: number): number {
  return timeMs <= 1 ? 0 : Math.min(timeBounds - 1, Math.ceil(Math.log(timeMs) / Math.log(growth)));
}

/** The time in the middle between a bound and the one before, in whole milliseconds. */
function timeAt(bound: number): number {
  return Math.round(growth ** (bound - 0.5));
}

/** Returns the times below which a share of all times is, in milliseconds; `null` without any. */
export function quantilesOf(counts: TimeCounts): (share: number) => number | null {
  const sorted = [...counts].toSorted(([one], [other]) => one - other);
  const total = sorted.reduce((sum, [, times]) => sum + times, 0);
  return (share) => {
    let left = Math.ceil(total * share);
    const found = sorted.find(([, times]) => (left -= times) <= 0);
    return found === undefined ? null : timeAt(found[0]);
  };
}

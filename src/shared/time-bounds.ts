/** How much larger each bound of times is than the one before: a time is known to half of it. */
export const boundGrowth = 1.05;

/** The longest time that is told apart from longer ones, in milliseconds. */
export const longestMs = 3_600_000;

/** How many bounds there are. */
export const timeBounds = Math.ceil(Math.log(longestMs) / Math.log(boundGrowth)) + 1;

/** How many times came within each bound, by its number: those that have any. */
export type BoundCounts = readonly (readonly [bound: number, times: number])[];

/** The number of the bound within which a time in milliseconds is. */
export function boundOf(timeMs: number): number {
  return timeMs <= 1 ? 0 : Math.min(timeBounds - 1, Math.ceil(Math.log(timeMs) / Math.log(boundGrowth)));
}

/** The longest time within a bound, in whole milliseconds; `null` for the last bound, which has all longer ones. */
export function longestWithin(bound: number): number | null {
  return bound >= timeBounds - 1 ? null : Math.floor(boundGrowth ** bound);
}

/** The time in the middle between a bound and the one before, in whole milliseconds. */
function timeAt(bound: number): number {
  return Math.round(boundGrowth ** (bound - 0.5));
}

/** Reads quantiles of counts, by shares from 0 to 1: the time in milliseconds, which is known to 2.5 %; `null` without any. */
export function quantilesOf(counts: Iterable<BoundCounts[number]>): (share: number) => number | null {
  const sorted = [...counts].toSorted(([one], [other]) => one - other);
  const total = sorted.reduce((sum, [, times]) => sum + times, 0);
  return (share) => {
    let left = Math.ceil(total * share);
    const found = sorted.find(([, times]) => (left -= times) <= 0);
    return found === undefined ? null : timeAt(found[0]);
  };
}

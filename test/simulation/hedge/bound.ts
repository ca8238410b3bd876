import { seededNumbers } from '../../support/random-numbers.ts';
import type { Shape } from './play.ts';

/** How many times are drawn of a shape, and how exact the result is, in milliseconds. */
const draws = 200_000;
const exactMs = 1;

/** The quantiles at which a second request may be sent. */
const quantiles = Array.from({ length: 99 }, (_, at) => (at + 1) / 100);

/**
 * The time within which a `share` of the first texts comes at best, in milliseconds, if each request may be sent once more
 * and `budget` of them are: by the best of all delays, each used as often as the budget allows, for someone who knows
 * the times of the shape beforehand. The times must be independent.
 */
export function leastWithin({ firstTextMs }: Shape, budget: number, share: number, seed: number): number {
  const random = seededNumbers(seed);
  const times = Float64Array.from({ length: draws }, () => firstTextMs(random, 0)).toSorted();
  const later = (ms: number): number => laterShare(times, ms);
  const bounds = quantiles.map((quantile) => {
    const delayMs = times[Math.ceil(draws * quantile) - 1] ?? 0;
    const chance = Math.min(1, budget / later(delayMs));
    return leastTime(times, (ms) => later(ms) * (1 - chance * (1 - later(ms - delayMs))) <= 1 - share);
  });
  return Math.min(...bounds);
}

/** The least time for which a condition holds that holds for all longer ones, too. */
function leastTime(times: Float64Array, holds: (ms: number) => boolean): number {
  let [from, to] = [0, times.at(-1) ?? 0];
  while (to - from > exactMs) {
    const middle = (from + to) / 2;
    if (holds(middle)) to = middle;
    else from = middle;
  }
  return to;
}

/** The share of sorted times that are longer than one. */
function laterShare(times: Float64Array, ms: number): number {
  let [from, to] = [0, times.length];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if ((times[middle] ?? 0) > ms) to = middle;
    else from = middle + 1;
  }
  return (times.length - from) / times.length;
}

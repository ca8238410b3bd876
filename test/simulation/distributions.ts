/** An exponential number with a mean: the time to the next of many independent events. */
export function exponential(random: () => number, mean: number): number {
  return -Math.log(1 - random()) * mean;
}

/** A standard normal number, by Box and Muller. */
export function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** A log-normal whole number of at least 1 with a median. */
export function logNormal(random: () => number, median: number, deviation: number): number {
  return Math.max(1, Math.round(median * Math.exp(deviation * normal(random))));
}

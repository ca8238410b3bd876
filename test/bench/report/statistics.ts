import type { Spread } from '../client/order.ts';

/** The value below which a share of the values lies, by the nearest rank; NaN without values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** The middle value, or the mean of the two in the middle; NaN without values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2;
}

/** The values of all rounds in short. */
export interface Summary {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly rounds: number;
}

export function summarize(values: readonly number[]): Summary {
  return {
    median: median(values),
    min: Math.min(...values),
    max: Math.max(...values),
    rounds: values.length,
  };
}

export function spreadOf(values: readonly number[]): Spread {
  return { p50: percentile(values, 0.5), p99: percentile(values, 0.99), max: percentile(values, 1) };
}

/** What each round adds over its base in the same round; a round without one of the two is left out. */
export function addedPerRound(
  values: ReadonlyMap<number, number>,
  base: ReadonlyMap<number, number>,
): readonly number[] {
  return [...values].flatMap(([round, value]) => {
    const below = base.get(round);
    return below === undefined ? [] : [value - below];
  });
}

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

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The value below which a share of the values lies, between the two nearest ones where it falls between them. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  return below + ((sorted[Math.ceil(place)] ?? Number.NaN) - below) * (place % 1);
}

/** The values of all rounds in short. */
export interface Summary {
  readonly median: number;
  /** The quartiles: half of the rounds lie between them. */
  readonly low: number;
  readonly high: number;
  readonly rounds: number;
  /** The values by their rounds, to be held against those of another subject in the same ones. */
  readonly byRound: ReadonlyMap<number, number>;
}

export function summarize(byRound: ReadonlyMap<number, number>): Summary {
  const values = [...byRound.values()];
  return {
    median: median(values),
    low: quantile(values, 0.25),
    high: quantile(values, 0.75),
    rounds: values.length,
    byRound,
  };
}

/** How much surer than not a difference must be, and in how many rounds at least it can be seen at all. */
const confidence = 0.9;
const leastRounds = 3;

/** What the rounds say of two subjects: too few of them, no difference that is larger than their noise, or one. */
export type Verdict = 'too few rounds' | 'within noise' | 'different';

/**
 * Compares two subjects by the ratios of the rounds that both have, in which the machine was the same. The true ratio lies
 * between the `rank`-th ratio from below and from above with the confidence above (of three and four rounds, with 75 and
 * 88 %), however the ratios are distributed; if 1 does as well, the difference may be noise.
 */
export function compareRounds(own: Summary, other: Summary): Verdict {
  const ratios = [...own.byRound].flatMap(([round, value]) => {
    const base = other.byRound.get(round);
    return base === undefined || base <= 0 ? [] : [value / base];
  });
  if (ratios.length < leastRounds) return 'too few rounds';
  const sorted = ratios.toSorted((a, b) => a - b);
  const rank = outerRank(sorted.length);
  const [low = Number.NaN, high = Number.NaN] = [sorted[rank - 1], sorted[sorted.length - rank]];
  return low > 1 || high < 1 ? 'different' : 'within noise';
}

/** The largest rank, from 1, between whose values from below and from above the median of all lies with the confidence. */
function outerRank(count: number): number {
  let rank = 1;
  // The chance that fewer than so many of the values lie below the median: each does with one half.
  let outside = 0.5 ** count;
  let ways = 1;
  for (;;) {
    ways = (ways * (count - rank + 1)) / rank;
    outside += ways * 0.5 ** count;
    if (1 - 2 * outside < confidence) return rank;
    rank++;
  }
}

export function spreadOf(values: readonly number[]): Spread {
  return { p50: percentile(values, 0.5), p99: percentile(values, 0.99), max: percentile(values, 1) };
}

/** What each round adds over its base in the same round; a round without one of the two is left out. */
export function addedPerRound(
  values: ReadonlyMap<number, number>,
  base: ReadonlyMap<number, number>,
): ReadonlyMap<number, number> {
  return new Map(
    [...values].flatMap(([round, value]): readonly [number, number][] => {
      const below = base.get(round);
      return below === undefined ? [] : [[round, value - below]];
    }),
  );
}

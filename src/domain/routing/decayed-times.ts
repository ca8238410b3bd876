/** How fast a mean forgets: a time counts half after this long, in milliseconds. */
const meanHalfLifeMs = 10_000;

/** The most times that a mean is made of: with more, a change after many times of before would be seen late. */
const maxMeanTimes = 50;

/** A mean of times in which recent ones count most. */
export class DecayedMean {
  #meanMs = 0;
  #weight = 0;
  #atMs = 0;

  /** Milliseconds; `null` before the first time. */
  get meanMs(): number | null {
    return this.#weight === 0 ? null : this.#meanMs;
  }

  /** Adds a time that was measured now. */
  add(timeMs: number, nowMs: number): void {
    const kept = this.#weight * 2 ** ((this.#atMs - nowMs) / meanHalfLifeMs);
    this.#weight = Math.min(kept, maxMeanTimes - 1) + 1;
    this.#meanMs += (timeMs - this.#meanMs) / this.#weight;
    this.#atMs = nowMs;
  }
}

/** Where the second bucket begins, in milliseconds, and how much longer each bucket is than the one before. */
const leastMs = 1;
const growth = 1.1;

/** How many buckets there are: the last one begins at about half an hour. */
const buckets = 152;

/** After which time a value counts half, in milliseconds. */
const halfLifeMs = 300_000;

/** How much a new value may weigh before all weights are divided by it: their sum must stay exact enough. */
const maxWeight = 2 ** 20;

/** Durations of the recent past, of which a quantile can be told: older ones count less and less. */
export class DecayedQuantile {
  readonly #weights = new Float64Array(buckets);
  #total = 0;
  /** When a new value weighed 1. */
  #unitMs = 0;

  /** Adds a duration that was measured now, both in milliseconds. */
  add(valueMs: number, nowMs: number): void {
    if (this.#total === 0) this.#unitMs = nowMs;
    let weight = this.#weightAt(nowMs);
    if (weight > maxWeight) {
      this.#total /= weight;
      for (const [at, each] of this.#weights.entries()) this.#weights[at] = each / weight;
      this.#unitMs = nowMs;
      weight = 1;
    }
    const at = bucketOf(valueMs);
    this.#weights[at] = (this.#weights[at] ?? 0) + weight;
    this.#total += weight;
  }

  /** How many values there are, each by what it still counts. */
  count(nowMs: number): number {
    return this.#total / this.#weightAt(nowMs);
  }

  /** The duration in milliseconds that a `share` of the values does not exceed: at most a tenth too long or too short. */
  within(share: number): number | null {
    let left = this.#total * share;
    for (const [at, weight] of this.#weights.entries()) {
      if (weight > 0 && left <= weight)
        return startOf(at) + (startOf(at + 1) - startOf(at)) * (left / weight);
      left -= weight;
    }
    return this.#total === 0 ? null : startOf(buckets);
  }

  #weightAt(nowMs: number): number {
    return 2 ** ((nowMs - this.#unitMs) / halfLifeMs);
  }
}

function bucketOf(valueMs: number): number {
  if (valueMs < leastMs) return 0;
  return Math.min(buckets - 1, 1 + Math.floor(Math.log(valueMs / leastMs) / Math.log(growth)));
}

/** Where a bucket begins, in milliseconds. */
function startOf(bucket: number): number {
  return bucket === 0 ? 0 : leastMs * growth ** (bucket - 1);
}

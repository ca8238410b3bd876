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

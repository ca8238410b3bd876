/** How long a worker must have taken requests for its end to count as the first one, in milliseconds. */
const stableMs = 60_000;

/** The delays before a worker is replaced, in milliseconds: the first one, the second, and the most. */
const firstDelayMs = 0;
const secondDelayMs = 500;
const longestDelayMs = 30_000;

/** How long to wait before a worker that ended by itself is replaced: at first not at all, then ever longer. */
export class RestartDelay {
  #ends = 0;

  /** The delay after the end of a worker that took requests for `servedMs`, or not at all (`null`). */
  next(servedMs: number | null): number {
    if (servedMs !== null && servedMs >= stableMs) this.#ends = 0;
    this.#ends++;
    if (this.#ends === 1) return firstDelayMs;
    return Math.min(longestDelayMs, secondDelayMs * 2 ** (this.#ends - 2));
  }
}

/** How much the latest time counts in the mean. */
const newest = 0.1;

/** The share of the mean that a request which is in progress for longer is expected to go on for. */
const overdue = 0.25;

/** How long requests are in progress at an upstream: the mean, in which later ones count more. */
export class HeldTimes {
  #meanMs: number | null = null;

  add(heldMs: number): void {
    this.#meanMs = this.#meanMs === null ? heldMs : this.#meanMs + newest * (heldMs - this.#meanMs);
  }

  /**
   * When the next of some requests gets one of `places`, if `ahead` others get one before, in milliseconds from now. Those in
   * progress end after the mean time, or soon if they are in progress for longer. As long as no request has ended, they are
   * expected to take at least as long as the oldest one has.
   */
  waitMs(startedMs: readonly number[], places: number, ahead: number, nowMs: number): number {
    const meanMs = this.#meanMs ?? Math.max(0, ...startedMs.map((started) => nowMs - started));
    const leftMs = startedMs.map((started) => Math.max(started + meanMs - nowMs, overdue * meanMs));
    while (leftMs.length < places && leftMs.length <= ahead) leftMs.push(0);
    // There may be more in progress than places, after the limit was lowered: the first ones to end leave none.
    const free = leftMs.toSorted((a, b) => a - b).slice(Math.max(0, leftMs.length - places));
    return (free[ahead % free.length] ?? 0) + Math.floor(ahead / Math.max(1, free.length)) * meanMs;
  }
}

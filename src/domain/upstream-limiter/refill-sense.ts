import { minuteMs } from './minute-window.ts';

/** How exactly the ends of two reports are compared, beside their resolution, in milliseconds: answers take different times. */
const jitterMs = 500;

/** How many times that tolerance the end must have moved, had what was used moved it. */
const leastMove = 4;

/** How many observations more for one kind than for the other decide, and how many are remembered. */
const decisive = 2;
const mostVotes = 4;

/**
 * Finds out how a limit comes back, whatever its headers usually mean: some servers report windows in the form of a steady
 * refill. As more is used, the end of a window stays where it is, and the end of a steady refill moves away.
 */
export class RefillSense {
  #votes = 0;
  #used = 0;
  /** The end by the report that others are compared with; `null` before the first one. */
  #endMs: number | null = null;

  /** Takes in a report of so much used of a limit, all of which is there again at `endMs`. */
  see(used: number, limit: number, endMs: number, resolutionMs: number): void {
    const toleranceMs = jitterMs + resolutionMs;
    const moveMs = ((used - this.#used) * minuteMs) / limit;
    if (this.#endMs !== null && used >= this.#used && moveMs < leastMove * toleranceMs) return;
    const movedMs = endMs - (this.#endMs ?? endMs);
    if (this.#endMs !== null && used > this.#used) {
      if (Math.abs(movedMs) <= toleranceMs) this.#votes = Math.min(mostVotes, this.#votes + 1);
      else if (movedMs >= moveMs / 2) this.#votes = Math.max(-mostVotes, this.#votes - 1);
    }
    this.#used = used;
    this.#endMs = endMs;
  }

  /** What reports have shown; `null` as long as they have not. */
  get refill(): 'steady' | 'window' | null {
    if (this.#votes >= decisive) return 'window';
    return this.#votes <= -decisive ? 'steady' : null;
  }
}

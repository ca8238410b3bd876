import type { CallInFlight } from './call-in-flight.ts';

/** The most requests in progress before the first answer: it may report limits, or refuse. */
const firstInFlight = 4;

/** What a refusal without a reason leaves of the requests in progress. */
const decrease = 0.5;

/** The first pause after such a refusal, and the longest, in milliseconds: each one in a row doubles it. */
const firstPauseMs = 1_000;
const longestPauseMs = 30_000;

/**
 * How many requests may be in progress at an upstream that refuses without saying how much it takes: fewer after a refusal,
 * and one more after as many answers as there may be requests in progress.
 */
export class LearnedBound {
  #learned: number | null = null;
  #isFirst = true;
  /** When the bound was lowered last: refusals of requests from before say nothing new. */
  #loweredMs = Number.NEGATIVE_INFINITY;
  #pauseMs = firstPauseMs;

  /** The most requests in progress now; `null` for any number. */
  get maxInFlight(): number | null {
    return this.#isFirst ? firstInFlight : this.learned;
  }

  /** What refusals led to; `null` without any. */
  get learned(): number | null {
    return this.#learned === null ? null : Math.floor(this.#learned);
  }

  /**
   * Notes the head of an answer: a success, a refusal without a reason, or something else. Returns for how long nothing
   * should be sent, in milliseconds.
   */
  answered(
    { startedMs }: CallInFlight,
    verdict: 'success' | 'refusal' | 'other',
    inFlight: number,
    nowMs: number,
  ): number {
    this.#isFirst = false;
    if (verdict === 'other' || startedMs <= this.#loweredMs) return 0;
    if (verdict === 'success') {
      if (this.#learned !== null) this.#learned += 1 / this.#learned;
      this.#pauseMs = firstPauseMs;
      return 0;
    }
    this.#learned = Math.max(1, Math.min(this.#learned ?? inFlight, inFlight) * decrease);
    this.#loweredMs = nowMs;
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(longestPauseMs, pauseMs * 2);
    return pauseMs;
  }
}

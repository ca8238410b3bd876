import type { Extent } from './configured-limits.ts';
import type { CallInFlight } from './call-in-flight.ts';

/** The longest pause that is kept, in milliseconds: after that, one request may have been the cause for all others. */
const maxPauseMs = 60_000;

/** How long the others wait for the answer to the request that tries then, in milliseconds: after that, another one tries. */
const maxTrialMs = 10_000;

/** How long an upstream, or a model there, is not used, as its answers asked for. Times are monotonic, in milliseconds. */
export class Pause {
  #untilMs = 0;
  /** Whether a longer pause was asked for than is kept, so that one request tries when it is over. */
  #isTrialDue = false;
  /** When the one that tries was sent; `null` before that. */
  #triedMs: number | null = null;

  leftMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs);
  }

  /** Whether nothing is left of it, nor of the wait for the one that tries. */
  isOver(nowMs: number): boolean {
    return nowMs >= this.#untilMs && !this.#isTrialDue;
  }

  /** When requests may start. For `certain` without the wait for the one that tries, as it may be answered any moment. */
  overAtMs(extent: Extent): number {
    const trialEndMs = this.#triedMs === null || extent === 'certain' ? 0 : this.#triedMs + maxTrialMs;
    return Math.max(this.#untilMs, trialEndMs);
  }

  /** An answer asked for a pause. */
  extend(durationMs: number, nowMs: number): void {
    this.#untilMs = Math.max(this.#untilMs, nowMs + Math.min(durationMs, maxPauseMs));
    this.#isTrialDue ||= durationMs > maxPauseMs;
  }

  /** A request starts. */
  began(nowMs: number): void {
    if (this.#isTrialDue) this.#triedMs = nowMs;
  }

  /** A request was answered, or failed: it decides on the others if it was sent after the pause. */
  ended(call: CallInFlight): void {
    if (!this.#isTrial(call)) return;
    this.#isTrialDue = false;
    this.#triedMs = null;
  }

  /** A request that has started is not sent: if it was to try, another one does. */
  releasedUnused(call: CallInFlight): void {
    if (this.#isTrial(call)) this.#triedMs = null;
  }

  #isTrial({ startedMs }: CallInFlight): boolean {
    return this.#isTrialDue && startedMs >= this.#untilMs;
  }
}

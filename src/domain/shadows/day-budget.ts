import { periodAt } from '../budgets/calendar.ts';
import type { PeriodBounds } from '../budgets/calendar.ts';

/** An amount that may be spent in each day in UTC; all amounts are in nano-USD. It is in memory: a start begins at zero. */
export class DayBudget {
  #day: PeriodBounds = { startMs: 0, endMs: 0 };
  #spent = 0;
  #held = 0;

  /** What was spent in the day that `nowMs` (milliseconds since 1970) is in, and when that day ends. */
  at(nowMs: number): { readonly spentNanos: number; readonly heldNanos: number; readonly endMs: number } {
    this.#turn(nowMs);
    return { spentNanos: this.#spent, heldNanos: this.#held, endMs: this.#day.endMs };
  }

  /**
   * Sets an expected cost aside; returns false if it does not fit into `limitNanos` beside what was spent today and what is
   * set aside. `limitNanos` is `null` for no limit.
   */
  hold(expectedNanos: number, limitNanos: number | null, nowMs: number): boolean {
    this.#turn(nowMs);
    if (limitNanos !== null && this.#spent + this.#held + expectedNanos > limitNanos) return false;
    this.#held += expectedNanos;
    return true;
  }

  /** Puts the cost into the place of what was set aside for it. It counts in the day in which it is known. */
  spend(heldNanos: number, costNanos: number, nowMs: number): void {
    this.#turn(nowMs);
    this.#held -= heldNanos;
    this.#spent += costNanos;
  }

  #turn(nowMs: number): void {
    // A clock that is set back must not give the budget of a day a second time.
    if (nowMs < this.#day.endMs) return;
    this.#day = periodAt(nowMs, 'day', 'UTC');
    this.#spent = 0;
  }
}

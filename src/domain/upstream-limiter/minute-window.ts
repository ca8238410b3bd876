/** The window of a limit per minute, in milliseconds. */
export const minuteMs = 60_000;

/**
 * How much later than another one a call may arrive at the upstream after it was sent, in milliseconds: a call counts for
 * that time longer. Without it, an upstream with a window of its own would find one call too many in a minute.
 */
export const arrivalJitterMs = 1_000;

/** How many expired entries may precede the others before the list is cut. */
const maxForgotten = 1_024;

interface Counted {
  readonly untilMs: number;
  readonly amount: number;
}

/**
 * Amounts of which each counts for a minute and the jitter of arrivals, on the monotonic clock. Entries are in the order of
 * their times, which never go back.
 */
export class MinuteWindow {
  #entries: Counted[] = [];
  /** The first entry that still counts. */
  #first = 0;
  #sum = 0;

  add(amount: number, nowMs: number): void {
    // The sum of a limit that is not set is never read: its entries would pile up.
    this.#forgetOld(nowMs);
    this.#entries.push({ untilMs: nowMs + minuteMs + arrivalJitterMs, amount });
    this.#sum += amount;
  }

  /** How many entries are kept, for tests of bounds. */
  get size(): number {
    return this.#entries.length;
  }

  /** Takes an amount back that was added at a time, unless it does not count any more. */
  remove(amount: number, addedMs: number, nowMs: number): void {
    this.#forgetOld(nowMs);
    const untilMs = addedMs + minuteMs + arrivalJitterMs;
    const at = this.#entries.findLastIndex((entry) => entry.untilMs === untilMs && entry.amount === amount);
    if (at < this.#first) return;
    this.#entries.splice(at, 1);
    this.#sum -= amount;
  }

  /** What counts now. */
  sum(nowMs: number): number {
    this.#forgetOld(nowMs);
    return this.#sum;
  }

  /** When at least `amount` of what counts now is over; `Infinity` if less than that counts. */
  overAtMs(amount: number, nowMs: number): number {
    this.#forgetOld(nowMs);
    if (amount <= 0) return nowMs;
    let over = 0;
    for (let at = this.#first; at < this.#entries.length; at++) {
      const entry = this.#entries[at] as Counted;
      over += entry.amount;
      if (over >= amount) return entry.untilMs;
    }
    return Number.POSITIVE_INFINITY;
  }

  #forgetOld(nowMs: number): void {
    for (let next = this.#entries[this.#first]; next !== undefined && next.untilMs <= nowMs;) {
      this.#sum -= next.amount;
      this.#first++;
      next = this.#entries[this.#first];
    }
    if (this.#first < maxForgotten || this.#first * 2 < this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#first);
    this.#first = 0;
  }
}

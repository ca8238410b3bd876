import type { ReportedLimit } from '../../protocol/upstream/limit-headers.ts';
import type { RequestTokens } from '../ports/upstream-limiters.ts';
import { minuteMs } from './minute-window.ts';

/** The periods of limits that are known, in milliseconds: a second, a minute, an hour and a day. */
const knownPeriodsMs = [minuteMs, 1_000, 3_600_000, 86_400_000] as const;

/** The least share of an earlier measurement's exactness that a later one needs to replace it. */
const leastExactness = 0.5;

/**
 * The share of a steady refill that is counted on: less of it each time that others were seen to use the same account, a little
 * more with every other report, and never less than the least.
 */
const shareLeft = 0.9;
const shareRegained = 0.01;
const leastShare = 0.1;

/**
 * One limit that an upstream reports. What is left of it is carried forward from report to report by what was sent since; a
 * report only bounds it. What it says was true at some moment between the request and its answer, so that requests sent
 * meanwhile may be counted in it or not: taking all of them off would leave a part of the limit unused, and taking none
 * of them off would use too much.
 */
export class LearnedLimit {
  readonly name: string;
  readonly counts: ReportedLimit['counts'];
  #limit: number;
  #level: number;
  #atMs: number;
  #refill: ReportedLimit['refill'];
  readonly #sense = new RefillSense();
  /** The time in which the whole limit comes back. */
  #periodMs: number = minuteMs;
  #refillShare = 1;
  /** How exactly the period was measured: the smaller of the numbers that it was computed from. */
  #exactness = 0;
  /** When a window is over at the latest. */
  #endMs = Number.POSITIVE_INFINITY;
  /** What the latest report said was left. */
  #remaining = 0;

  /** When the current window began, as far as this process knows. */
  #turnedMs = Number.NEGATIVE_INFINITY;
  /** What requests in progress may still take of it. */
  readonly #pending: (limit: LearnedLimit) => number;

  /**
   * `unseen` is the most that requests have taken which the report may not show. `pending` says what requests in progress
   * may be counted at later: a new window may begin with them.
   */
  constructor(
    report: ReportedLimit,
    unseen: number,
    nowMs: number,
    pending: (limit: LearnedLimit) => number,
  ) {
    this.name = report.name;
    this.counts = report.counts;
    this.#limit = report.limit;
    this.#refill = report.refill;
    this.#level = report.remaining - unseen;
    this.#atMs = nowMs;
    this.#pending = pending;
    this.report(report, unseen, nowMs);
  }

  get limit(): number {
    return this.#limit;
  }

  /** When the current window began: a report for an earlier request may be of the one before. */
  get turnedMs(): number {
    return this.#turnedMs;
  }

  /** What a request takes of it. */
  amountOf({ input, output }: RequestTokens): number {
    if (this.counts === 'requests') return 1;
    if (this.counts === 'input') return input;
    return this.counts === 'output' ? output : input + output;
  }

  /** What is left, which is below 0 where more was used than there was. */
  level(nowMs: number): number {
    this.#advance(nowMs);
    return this.#level;
  }

  /** Takes an amount, or gives one back if it is below 0. */
  use(amount: number, nowMs: number): void {
    this.#advance(nowMs);
    this.#level -= amount;
  }

  /** When an amount has come back, if no other one is taken: now or earlier if it is there. */
  availableAtMs(amount: number, nowMs: number): number {
    this.#advance(nowMs);
    const missing = amount - this.#level;
    if (missing <= 0) return nowMs;
    if (this.#refill === 'steady') return nowMs + missing / this.#perMs;
    const windows = Math.max(0, Math.ceil(missing / this.#limit) - 1);
    return this.#endMs + windows * this.#periodMs;
  }

  /** Takes in a later report; returns whether it changed what was believed to be left. */
  report(report: ReportedLimit, unseen: number, nowMs: number): boolean {
    const { limit, remaining, resetMs, resolutionMs } = report;
    this.#advance(nowMs);
    this.#limit = limit;
    if (resetMs !== null) this.#sense.see(limit - remaining, limit, nowMs + resetMs, resolutionMs);
    this.#follow(this.#sense.refill ?? report.refill);
    const isMore = remaining > this.#remaining && remaining - unseen > this.#level;
    if (this.#refill === 'steady') this.#measure(limit - remaining, resetMs, resolutionMs);
    else this.#findEnd(resetMs, resolutionMs, isMore, nowMs);
    this.#remaining = remaining;
    const before = this.#level;
    const isTaken = this.#refill === 'steady' && before > remaining;
    this.#refillShare = isTaken
      ? Math.max(leastShare, this.#refillShare * shareLeft)
      : Math.min(1, this.#refillShare + shareRegained);
    // What others take is only seen afterwards: then the least is believed that may be left.
    this.#level = isTaken ? remaining - unseen : Math.min(remaining, Math.max(before, remaining - unseen));
    return this.#level !== before;
  }

  /** Goes by a kind of refill. What was measured for the other one says nothing of it. */
  #follow(refill: ReportedLimit['refill']): void {
    if (refill === this.#refill) return;
    this.#refill = refill;
    this.#periodMs = minuteMs;
    this.#exactness = 0;
    this.#endMs = Number.POSITIVE_INFINITY;
  }

  /** The period of a steady refill, by how long what was used takes to come back. */
  #measure(used: number, resetMs: number | null, resolutionMs: number): void {
    if (resetMs === null || resetMs === 0 || used < 1) return;
    const exactness = Math.min(used, resetMs / resolutionMs);
    if (exactness < this.#exactness * leastExactness) return;
    // Both numbers are rounded: less than one may be used, and the reset may be later.
    const shortestMs = (this.#limit * resetMs) / (used + 1);
    const longestMs = (this.#limit * (resetMs + resolutionMs)) / Math.max(used - 1, 0.5);
    const known = knownPeriodsMs.find((periodMs) => periodMs >= shortestMs && periodMs <= longestMs);
    this.#periodMs = known ?? longestMs;
    this.#exactness = Math.max(exactness, this.#exactness);
  }

  /** When a window ends; `isMore` if more is left than in the window that is known, whatever a report may not show. */
  #findEnd(resetMs: number | null, resolutionMs: number, isMore: boolean, nowMs: number): void {
    if (resetMs === null) {
      // Of a window that has begun it is known that it ends within its period.
      if (isMore || this.#endMs === Number.POSITIVE_INFINITY) this.#endMs = nowMs + this.#periodMs;
      return;
    }
    const endMs = nowMs + resetMs + resolutionMs;
    // Near its end the reset of a long window looks like that of a short one.
    const shortestMs = [3_600_000, 86_400_000].find((periodMs) => periodMs >= resetMs) ?? resetMs;
    if (resetMs > this.#periodMs) this.#periodMs = shortestMs;
    // Each report is a bound of the end: the earliest one counts, unless it is of another window.
    const isAnother = endMs > this.#endMs + this.#periodMs / 2 || this.#endMs < nowMs;
    this.#endMs = isAnother ? endMs : Math.min(endMs, this.#endMs);
  }

  /** What comes back of a steady refill in a millisecond. */
  get #perMs(): number {
    return (this.#limit * this.#refillShare) / this.#periodMs;
  }

  #advance(nowMs: number): void {
    const passedMs = nowMs - this.#atMs;
    this.#atMs = nowMs;
    if (this.#refill === 'steady') {
      this.#level = Math.min(this.#limit, this.#level + passedMs * this.#perMs);
      return;
    }
    if (nowMs < this.#endMs) return;
    this.#level = this.#limit - this.#pending(this);
    this.#remaining = this.#limit;
    this.#turnedMs = nowMs;
    this.#endMs += this.#periodMs * (1 + Math.floor((nowMs - this.#endMs) / this.#periodMs));
  }
}

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
class RefillSense {
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

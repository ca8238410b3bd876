import { DecayedMean, DecayedQuantile } from './decayed-times.ts';

/** How long a failed attempt counts against a route, in milliseconds. */
const failingMs = 10_000;

/** After how long without a measured time a route is worth another look, in milliseconds. */
const staleMs = 30_000;

/** How long after its latest attempt a route of which no time is known is tried again, in milliseconds. */
const trialGapMs = 10_000;

/** From how long on a wait without any text counts at a route of which no time is known, in milliseconds. */
const leastWaitMs = 1_000;

/** What operators see of a measure. */
export interface RouteMeasureView {
  /** Requests of this process in progress there. */
  readonly inFlight: number;
  /** Of them, those without any text yet. */
  readonly waiting: number;
  /** How many recent times to the first text are known: each counts half after five minutes. */
  readonly firstTexts: number;
  /** The mean of the recent times to the first text, in milliseconds; `null` before the first one. */
  readonly firstTextMs: number | null;
  /** The time within which 95 % of them came. */
  readonly firstTextP95Ms: number | null;
  /** Whether its latest attempt failed, not long ago. */
  readonly isFailing: boolean;
}

/** One attempt as a measure counts it. */
export interface MeasuredAttempt {
  /** Notes the first text. */
  opened(nowMs: number): void;
  /** Notes the end, and whether the route was at fault; only the first call counts. */
  ended(nowMs: number, hasFailed: boolean): void;
}

/**
 * What the attempts of this process show of one route: how soon its first text comes, and how many requests are in
 * progress there. All times are on the monotonic clock.
 */
export class RouteMeasure {
  readonly #mean = new DecayedMean();
  readonly #quantile = new DecayedQuantile();
  #inFlight = 0;
  #waiting = 0;
  /** The sum of the times at which the waiting attempts began. */
  #waitingSinceMs = 0;
  #beganMs = Number.NEGATIVE_INFINITY;
  #measuredMs = Number.NEGATIVE_INFINITY;
  #failedMs = Number.NEGATIVE_INFINITY;

  /** The requests of this process in progress there. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Those of them that have no text yet. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * The expected time to the first text, in milliseconds: the mean, or for how long the waiting attempts have waited on
   * average, if that is longer, so a route that hangs is noticed before its first attempt fails. `null` if no time is known.
   */
  expectedMs(nowMs: number): number | null {
    const { meanMs } = this.#mean;
    if (meanMs === null || this.#waiting === 0) return meanMs;
    return Math.max(meanMs, nowMs - this.#waitingSinceMs / this.#waiting);
  }

  /** Whether the latest attempt failed, not long ago. */
  isFailing(nowMs: number): boolean {
    return nowMs - this.#failedMs < failingMs;
  }

  /** Whether a trial would show what is not known: no time at all, no attempt is under way, and none began just now. */
  isUntried(nowMs: number): boolean {
    return this.#mean.meanMs === null && this.#isIdle(nowMs);
  }

  /** The same for a route whose times are old. */
  isStale(nowMs: number): boolean {
    return nowMs - this.#measuredMs >= staleMs && this.#isIdle(nowMs);
  }

  #isIdle(nowMs: number): boolean {
    return this.#waiting === 0 && nowMs - this.#beganMs >= trialGapMs;
  }

  /** How many recent times to the first text are known: each counts half after five minutes. */
  firstTexts(nowMs: number): number {
    return this.#quantile.count(nowMs);
  }

  /** The time in milliseconds within which a `share` of the first texts came, from 0 to 1; `null` if none is known. */
  firstTextWithin(share: number): number | null {
    return this.#quantile.within(share);
  }

  view(nowMs: number): RouteMeasureView {
    return {
      inFlight: this.#inFlight,
      waiting: this.#waiting,
      firstTexts: this.firstTexts(nowMs),
      firstTextMs: this.#mean.meanMs,
      firstTextP95Ms: this.firstTextWithin(0.95),
      isFailing: this.isFailing(nowMs),
    };
  }

  /** Notes that an attempt begins. */
  began(startedMs: number): MeasuredAttempt {
    this.#beganMs = startedMs;
    this.#inFlight++;
    this.#waiting++;
    this.#waitingSinceMs += startedMs;
    let isWaiting = true;
    let isOver = false;
    const endWait = (): void => {
      isWaiting = false;
      this.#waiting--;
      // A sum of fractions is not exact: what is left of it would grow with the number of attempts.
      this.#waitingSinceMs = this.#waiting === 0 ? 0 : this.#waitingSinceMs - startedMs;
    };
    return {
      opened: (nowMs) => {
        if (!isWaiting) return;
        endWait();
        this.#failedMs = Number.NEGATIVE_INFINITY;
        this.#add(nowMs - startedMs, nowMs);
      },
      ended: (nowMs, hasFailed) => {
        if (isOver) return;
        isOver = true;
        this.#inFlight--;
        if (isWaiting) {
          endWait();
          this.#addWait(nowMs - startedMs, nowMs);
        }
        if (hasFailed) this.#failedMs = nowMs;
      },
    };
  }

  /**
   * Counts a wait that ended without any text, as that of a client that gave up: the text would have come even later. A
   * short one says nothing, such as that of a refused connection.
   */
  #addWait(waitedMs: number, nowMs: number): void {
    if (waitedMs >= (this.#mean.meanMs ?? leastWaitMs)) this.#add(waitedMs, nowMs);
  }

  #add(timeMs: number, nowMs: number): void {
    this.#mean.add(timeMs, nowMs);
    this.#quantile.add(timeMs, nowMs);
    this.#measuredMs = nowMs;
  }
}

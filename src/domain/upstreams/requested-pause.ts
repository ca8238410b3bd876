import type { HealthSign } from './failure.ts';

/**
 * How long a route is tried last after a rate limit without `retry-after`, in milliseconds. With a `retry-after`, it is not
 * used at all for that time.
 */
const defaultCoolDownMs = 5_000;

/**
 * How long a requested pause is kept without a trial, in milliseconds. After that, one trial request at a time shows
 * whether the pause still holds: one client's oversized request may have caused it, and a model with a single route
 * would be unavailable to all other clients.
 */
const maxPauseMs = 60_000;

/** The pause where a rate limit asks for one of 0: the same request would only be refused again, in milliseconds. */
const leastPauseMs = 1_000;

/** How long a trial during a pause may run, and the `retry-after` of other requests meanwhile, in milliseconds. */
const trialMs = 10_000;
const trialRetryMs = 1_000;

/** The pause that rate limits asked for; times are on the monotonic clock. */
export class RequestedPause {
  /** Until when nothing is sent at all, and until when a pause was asked for. */
  #coolUntilMs = 0;
  #untilMs = 0;
  /** When the trial request for a long pause was sent. */
  #trialStartMs: number | null = null;
  /** Until when it is tried last, after a rate limit without `retry-after`, and when the latest rate limit came. */
  #lastUntilMs = 0;
  #limitedMs = 0;

  /** The rest of the time in which nothing is sent, in milliseconds. */
  leftMs(nowMs: number): number {
    if (nowMs < this.#coolUntilMs) return this.#coolUntilMs - nowMs;
    const isAsking = this.#trialStartMs !== null && nowMs - this.#trialStartMs < trialMs;
    return nowMs < this.#untilMs && isAsking ? Math.min(trialRetryMs, this.#untilMs - nowMs) : 0;
  }

  /** Whether it is tried last. */
  isLast(nowMs: number): boolean {
    return nowMs < this.#lastUntilMs;
  }

  /** When the pause ends that was asked for; `null` without one. */
  endMs(nowMs: number): number | null {
    const endMs = Math.max(this.#coolUntilMs, this.#untilMs);
    return endMs > nowMs ? endMs : null;
  }

  began(nowMs: number): void {
    if (nowMs >= this.#coolUntilMs && nowMs < this.#untilMs) this.#trialStartMs = nowMs;
  }

  /** An answer has begun: one that was asked for after the latest rate limit ends what that one asked for. */
  opened(startedMs: number): void {
    if (this.#trialStartMs === startedMs) this.#end();
    if (startedMs > this.#limitedMs) this.#lastUntilMs = 0;
  }

  ended(sign: HealthSign, retryAfterMs: number | null, startedMs: number, nowMs: number): void {
    const wasTrial = this.#trialStartMs === startedMs;
    if (wasTrial) this.#trialStartMs = null;
    if (sign === 'busy') {
      this.#limitedMs = nowMs;
      if (retryAfterMs === null) this.#lastUntilMs = nowMs + defaultCoolDownMs;
      const pauseMs = retryAfterMs === null ? 0 : retryAfterMs || leastPauseMs;
      this.#coolUntilMs = Math.max(this.#coolUntilMs, nowMs + Math.min(pauseMs, maxPauseMs));
      // The answer to a trial replaces the pause; otherwise the longest counts, since answers may overtake each other.
      this.#untilMs = Math.max(wasTrial ? 0 : this.#untilMs, nowMs + pauseMs);
    } else if (wasTrial && sign !== 'unknown') this.#end();
  }

  #end(): void {
    this.#trialStartMs = null;
    this.#untilMs = 0;
  }
}

import type { HealthSign } from './failure.ts';

/** `closed`: used; `open`: tried last; `half_open`: one trial request shows whether the upstream works again. */
export type UpstreamState = 'closed' | 'open' | 'half_open';

/** `available`: used as usual; `failing`: used when no other route is left; `cooling`: not used at all. */
export type Availability = 'available' | 'failing' | 'cooling';

/** Consecutive failures that open a circuit. */
const maxConsecutiveFailures = 5;

/** The failure ratio that opens a circuit, over at least `minAttempts` in one window of `windowMs` milliseconds. */
const maxFailureShare = 0.5;
const minAttempts = 20;
const windowMs = 30_000;

/** How long a circuit stays open before a trial request, in milliseconds. */
export const circuitOpenMs = 5_000;

/** How long a trial request may run before another is sent, in milliseconds. Bounds the trials at a hung upstream. */
const probePatienceMs = 60_000;

/**
 * How long an upstream is tried last after a rate limit without `retry-after`, in milliseconds. With a `retry-after`,
 * the upstream is not used at all for that time.
 */
const defaultCoolDownMs = 5_000;

/**
 * How long a requested pause is kept without a trial, in milliseconds. After that, one trial request at a time shows
 * whether the pause still holds: one client's oversized request may have caused it, and a model with a single route
 * would be unavailable to all other clients.
 */
const maxPauseMs = 60_000;

/** How long a trial during a pause may run, and the `retry-after` of other requests meanwhile, in milliseconds. */
const pauseProbeMs = 10_000;
const pauseRetryMs = 1_000;

/** What opens a circuit: so many failures one after the other, or a share of the attempts in a window of time. */
export const circuitRules = { maxConsecutiveFailures, maxFailureShare, minAttempts, windowMs } as const;

/** What a circuit knows; times are on the monotonic clock. */
export interface CircuitView {
  readonly state: UpstreamState;
  /** When it opened; `null` while it is closed. Failed trials since then leave this as it is. */
  readonly openSinceMs: number | null;
  /** When a trial request may be sent; `null` unless it is open. */
  readonly trialAtMs: number | null;
  /** Whether a trial request runs. */
  readonly isOnTrial: boolean;
  readonly consecutiveFailures: number;
  /** The attempts of the current window, and how many of them failed. */
  readonly windowAttempts: number;
  readonly windowFailures: number;
  /** Until when the upstream asked for a pause; `null` if it did not, or the time is over. */
  readonly pausedUntilMs: number | null;
}

/** The circuit breaker of one upstream; times are on the monotonic clock. */
export class Circuit {
  #consecutiveFailures = 0;
  #window = { startMs: 0, attempts: 0, failures: 0 };
  #openedMs: number | null = null;
  /** When it opened: `#openedMs` is the time of the latest failed trial. */
  #openSinceMs: number | null = null;
  /** When the trial request was sent. */
  #probeStartMs: number | null = null;
  /** Until when the upstream is not used at all, and until when it asked for a pause. */
  #coolUntilMs = 0;
  #pauseUntilMs = 0;
  /** When the trial request for a long pause was sent. */
  #pauseProbeMs: number | null = null;
  /** Until when the upstream is tried last, after a rate limit without `retry-after`. */
  #lastUntilMs = 0;

  get isOpen(): boolean {
    return this.#openedMs !== null;
  }

  state(nowMs: number): UpstreamState {
    if (this.#openedMs === null) return 'closed';
    return nowMs - this.#openedMs < circuitOpenMs ? 'open' : 'half_open';
  }

  view(nowMs: number): CircuitView {
    const state = this.state(nowMs);
    const isWindowOver = nowMs - this.#window.startMs >= windowMs;
    const pauseEndMs = Math.max(this.#coolUntilMs, this.#pauseUntilMs);
    return {
      state,
      openSinceMs: this.#openSinceMs,
      trialAtMs: state === 'open' && this.#openedMs !== null ? this.#openedMs + circuitOpenMs : null,
      isOnTrial: this.#isProbing(nowMs),
      consecutiveFailures: this.#consecutiveFailures,
      windowAttempts: isWindowOver ? 0 : this.#window.attempts,
      windowFailures: isWindowOver ? 0 : this.#window.failures,
      pausedUntilMs: pauseEndMs > nowMs ? pauseEndMs : null,
    };
  }

  availability(nowMs: number): Availability {
    const state = this.state(nowMs);
    const probing = this.#isProbing(nowMs);
    if (this.coolingMs(nowMs) > 0) return 'cooling';
    const isLast = state === 'open' || (state === 'half_open' && probing) || nowMs < this.#lastUntilMs;
    return isLast ? 'failing' : 'available';
  }

  coolingMs(nowMs: number): number {
    if (nowMs < this.#coolUntilMs) return this.#coolUntilMs - nowMs;
    const isAsking = this.#pauseProbeMs !== null && nowMs - this.#pauseProbeMs < pauseProbeMs;
    return nowMs < this.#pauseUntilMs && isAsking ? Math.min(pauseRetryMs, this.#pauseUntilMs - nowMs) : 0;
  }

  began(nowMs: number): void {
    if (nowMs >= this.#coolUntilMs && nowMs < this.#pauseUntilMs) this.#pauseProbeMs = nowMs;
    if (this.state(nowMs) === 'half_open') this.#probeStartMs = nowMs;
  }

  opened(startedMs: number): void {
    if (this.#probeStartMs === startedMs) this.#probeStartMs = null;
    if (this.#pauseProbeMs === startedMs) this.#endPause();
    if (this.#openedMs !== null && startedMs >= this.#openedMs) this.#close();
  }

  ended(sign: HealthSign, retryAfterMs: number | null, startedMs: number, nowMs: number): void {
    if (this.#probeStartMs === startedMs) this.#probeStartMs = null;
    const askedAboutPause = this.#pauseProbeMs === startedMs;
    if (askedAboutPause) this.#pauseProbeMs = null;
    if (sign === 'busy') {
      this.#lastUntilMs = nowMs + defaultCoolDownMs;
      const pauseMs = retryAfterMs ?? 0;
      this.#coolUntilMs = Math.max(this.#coolUntilMs, nowMs + Math.min(pauseMs, maxPauseMs));
      // The answer to a trial replaces the pause; otherwise the longest counts, since answers may overtake each other.
      this.#pauseUntilMs = Math.max(askedAboutPause ? 0 : this.#pauseUntilMs, nowMs + pauseMs);
    } else if (askedAboutPause && sign !== 'unknown') this.#endPause();
    // An attempt that was sent before the circuit opened says nothing about the upstream since.
    const counts = sign === 'success' || sign === 'failure';
    if (!counts || (this.#openedMs !== null && startedMs < this.#openedMs)) return;
    if (nowMs - this.#window.startMs >= windowMs) this.#window = { startMs: nowMs, attempts: 0, failures: 0 };
    this.#window.attempts++;
    if (sign === 'success') this.#succeeded();
    else this.#failed(nowMs);
  }

  #isProbing(nowMs: number): boolean {
    return this.#probeStartMs !== null && nowMs - this.#probeStartMs < probePatienceMs;
  }

  #endPause(): void {
    this.#pauseProbeMs = null;
    this.#pauseUntilMs = 0;
  }

  #succeeded(): void {
    this.#consecutiveFailures = 0;
    if (this.#openedMs !== null) this.#close();
  }

  #close(): void {
    this.#openedMs = null;
    this.#openSinceMs = null;
    this.#consecutiveFailures = 0;
    this.#window = { startMs: 0, attempts: 0, failures: 0 };
  }

  #failed(nowMs: number): void {
    const { attempts, failures } = this.#window;
    this.#window.failures = failures + 1;
    this.#consecutiveFailures++;
    const share = attempts >= minAttempts && (failures + 1) / attempts >= maxFailureShare;
    if (this.#openedMs === null && !share && this.#consecutiveFailures < maxConsecutiveFailures) return;
    this.#openSinceMs ??= nowMs;
    this.#openedMs = nowMs;
  }
}

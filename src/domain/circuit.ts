import { verdicts } from './attempt-result.ts';
import type { AttemptResult } from './attempt-result.ts';

/** Whether an upstream is used: as usual, not for now, or for one request that finds out. */
export type UpstreamState = 'closed' | 'open' | 'half_open';

/** How an upstream may be used now: as usual, when nobody better is left, or not at all. */
export type Availability = 'available' | 'failing' | 'cooling';

/** So many failures in a row open an upstream's circuit. */
const maxConsecutiveFailures = 5;

/** So does this share of failures among at least so many attempts of one window, in milliseconds. */
const maxFailureShare = 0.5;
const minAttempts = 20;
const windowMs = 30_000;

/** How long it stays open, in milliseconds. */
const openMs = 5_000;

/** How long one request is waited for that finds out, in milliseconds: an upstream that hangs would get more of them. */
const probePatienceMs = 60_000;

/**
 * How long an upstream is asked last that limits us without saying for how long, in milliseconds. Where it does say, it
 * is not asked at all.
 */
const defaultCoolDownMs = 5_000;

/**
 * How long a pause that an upstream asked for is kept without a question, in milliseconds. A longer one is asked about
 * from then on, by one request at a time: one client's oversized request may have caused it, and would shut a model with
 * a single route for all others.
 */
const maxPauseMs = 60_000;

/** How long that request is waited for before another one asks, and how soon others may come back, in milliseconds. */
const pauseProbeMs = 10_000;
const pauseRetryMs = 1_000;

/** One upstream's past, as far as it matters; times are on the monotonic clock. */
export class Circuit {
  #consecutiveFailures = 0;
  #window = { startMs: 0, attempts: 0, failures: 0 };
  #openedMs: number | null = null;
  /** When the request was sent that finds out whether it is well again. */
  #probeStartMs: number | null = null;
  /** Until when it is not asked at all, and until when it asked for that. */
  #coolUntilMs = 0;
  #pauseUntilMs = 0;
  /** When the request was sent that asks whether a long pause is over. */
  #pauseProbeMs: number | null = null;
  /** Until when it is asked last, because it limited us without saying for how long. */
  #lastUntilMs = 0;

  get isOpen(): boolean {
    return this.#openedMs !== null;
  }

  state(nowMs: number): UpstreamState {
    if (this.#openedMs === null) return 'closed';
    return nowMs - this.#openedMs < openMs ? 'open' : 'half_open';
  }

  availability(nowMs: number): Availability {
    const state = this.state(nowMs);
    const probing = this.#probeStartMs !== null && nowMs - this.#probeStartMs < probePatienceMs;
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

  ended(result: AttemptResult, retryAfterMs: number | null, startedMs: number, nowMs: number): void {
    if (this.#probeStartMs === startedMs) this.#probeStartMs = null;
    const askedAboutPause = this.#pauseProbeMs === startedMs;
    if (askedAboutPause) this.#pauseProbeMs = null;
    if (result === 'rate_limited' || result === 'overloaded') {
      this.#lastUntilMs = nowMs + defaultCoolDownMs;
      const pauseMs = retryAfterMs ?? 0;
      this.#coolUntilMs = Math.max(this.#coolUntilMs, nowMs + Math.min(pauseMs, maxPauseMs));
      // Its newest word counts where it was asked for; else the longest, since answers may overtake each other.
      this.#pauseUntilMs = Math.max(askedAboutPause ? 0 : this.#pauseUntilMs, nowMs + pauseMs);
    } else if (askedAboutPause && result !== 'interrupted') this.#endPause();
    const verdict = verdicts[result];
    // What was sent before the circuit opened is no news about how the upstream is since.
    if (verdict === 'neutral' || (this.#openedMs !== null && startedMs < this.#openedMs)) return;
    if (nowMs - this.#window.startMs >= windowMs) this.#window = { startMs: nowMs, attempts: 0, failures: 0 };
    this.#window.attempts++;
    if (verdict === 'success') this.#succeeded();
    else this.#failed(nowMs);
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
    this.#consecutiveFailures = 0;
    this.#window = { startMs: 0, attempts: 0, failures: 0 };
  }

  #failed(nowMs: number): void {
    const { attempts, failures } = this.#window;
    this.#window.failures = failures + 1;
    this.#consecutiveFailures++;
    const share = attempts >= minAttempts && (failures + 1) / attempts >= maxFailureShare;
    if (this.#openedMs !== null || share || this.#consecutiveFailures >= maxConsecutiveFailures)
      this.#openedMs = nowMs;
  }
}

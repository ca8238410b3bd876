import { FailureKeys } from './failure-keys.ts';
import type { HealthSign } from './failure.ts';
import { RequestedPause } from './requested-pause.ts';

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
 * How long after the latest answer a circuit that is open for one key alone is shown as closed, in milliseconds. Without answers
 * views and events show it as open: there may be no other key. Requests of other keys are sent in any case.
 */
const answeredMs = 30_000;

/** What opens a circuit: so many failures one after the other, or a share of the attempts in a window of time. */
export const circuitRules = { maxConsecutiveFailures, maxFailureShare, minAttempts, windowMs } as const;

/** What a circuit knows; times are on the monotonic clock. */
export interface CircuitView {
  /** That of a circuit which is open for one key alone is `closed` while others get answers. */
  readonly state: UpstreamState;
  /** The key for whose requests alone it is open, as it had all the failures; `null` for all keys, and while it is closed. */
  readonly onlyKey: string | null;
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
  /** Until when a pause was asked for; `null` if none was, or the time is over. */
  readonly pausedUntilMs: number | null;
}

/**
 * The circuit breaker of an upstream, or of a model there, and the pause that was asked for. Times are on the monotonic clock.
 * A key is that of the request; `null` where none is to be told from others.
 */
export class Circuit {
  readonly #pause = new RequestedPause();
  #consecutiveFailures = 0;
  #window = { startMs: 0, attempts: 0, failures: 0 };
  /** The keys of the consecutive failures, and of those in the window. */
  readonly #runKeys = new FailureKeys();
  readonly #windowKeys = new FailureKeys();
  #openedMs: number | null = null;
  /** When it opened: `#openedMs` is the time of the latest failed trial. */
  #openSinceMs: number | null = null;
  #onlyKey: string | null = null;
  /** When an answer last began, or ended well. */
  #answeredMs = Number.NEGATIVE_INFINITY;
  /** When the trial request was sent. */
  #probeStartMs: number | null = null;

  get isOpen(): boolean {
    return this.#openedMs !== null;
  }

  get onlyKey(): string | null {
    return this.#onlyKey;
  }

  /** The state as it is shown. */
  state(nowMs: number): UpstreamState {
    const isOfOneKey = this.#onlyKey !== null && nowMs - this.#answeredMs < answeredMs;
    return isOfOneKey ? 'closed' : this.#stateFor(this.#onlyKey, nowMs);
  }

  view(nowMs: number): CircuitView {
    const state = this.state(nowMs);
    const isWindowOver = nowMs - this.#window.startMs >= windowMs;
    return {
      state,
      onlyKey: this.#onlyKey,
      openSinceMs: this.#openSinceMs,
      trialAtMs: state === 'open' && this.#openedMs !== null ? this.#openedMs + circuitOpenMs : null,
      isOnTrial: this.#isProbing(nowMs),
      consecutiveFailures: this.#consecutiveFailures,
      windowAttempts: isWindowOver ? 0 : this.#window.attempts,
      windowFailures: isWindowOver ? 0 : this.#window.failures,
      pausedUntilMs: this.#pause.endMs(nowMs),
    };
  }

  /** How it is for requests of a key; as it is shown with `null`. */
  availability(nowMs: number, key: string | null): Availability {
    if (this.coolingMs(nowMs) > 0) return 'cooling';
    const state = key === null ? this.state(nowMs) : this.#stateFor(key, nowMs);
    const isTried = state === 'half_open' && this.#isProbing(nowMs);
    return state === 'open' || isTried || this.#pause.isLast(nowMs) ? 'failing' : 'available';
  }

  /** The rest of the time in which nothing is sent, in milliseconds. */
  coolingMs(nowMs: number): number {
    return this.#pause.leftMs(nowMs);
  }

  began(nowMs: number, key: string | null): void {
    this.#pause.began(nowMs);
    if (this.#stateFor(key, nowMs) === 'half_open') this.#probeStartMs = nowMs;
  }

  opened(startedMs: number, nowMs: number): void {
    this.#answeredMs = nowMs;
    if (this.#probeStartMs === startedMs) this.#probeStartMs = null;
    this.#pause.opened(startedMs);
    if (this.#openedMs !== null && startedMs >= this.#openedMs) this.#close();
  }

  /** An attempt has ended; the key is `null` if no request can have caused its failure. */
  ended(
    sign: HealthSign,
    retryAfterMs: number | null,
    startedMs: number,
    nowMs: number,
    key: string | null,
  ): void {
    if (this.#probeStartMs === startedMs) this.#probeStartMs = null;
    this.#pause.ended(sign, retryAfterMs, startedMs, nowMs);
    const counts = sign === 'success' || sign === 'failure';
    if (!counts || this.#isTooOld(startedMs, key)) return;
    if (nowMs - this.#window.startMs >= windowMs) this.#beginWindow(nowMs);
    this.#window.attempts++;
    if (sign === 'success') this.#succeeded(nowMs);
    else this.#failed(nowMs, key);
  }

  /** Opens it, for a failure that is counted elsewhere. */
  open(onlyKey: string | null, startedMs: number, nowMs: number): void {
    if (this.#isTooOld(startedMs, onlyKey)) return;
    this.#onlyKey = onlyKey;
    this.#openSinceMs ??= nowMs;
    this.#openedMs = nowMs;
  }

  #stateFor(key: string | null, nowMs: number): UpstreamState {
    if (this.#openedMs === null || !this.#isFor(key)) return 'closed';
    return nowMs - this.#openedMs < circuitOpenMs ? 'open' : 'half_open';
  }

  #isFor(key: string | null): boolean {
    return this.#onlyKey === null || this.#onlyKey === key;
  }

  #isProbing(nowMs: number): boolean {
    return this.#probeStartMs !== null && nowMs - this.#probeStartMs < probePatienceMs;
  }

  /** An attempt that was sent before the circuit opened says nothing about the upstream since. */
  #isTooOld(startedMs: number, key: string | null): boolean {
    return this.#openedMs !== null && startedMs < this.#openedMs && this.#isFor(key);
  }

  #beginWindow(startMs: number): void {
    this.#window = { startMs, attempts: 0, failures: 0 };
    this.#windowKeys.clear();
  }

  #succeeded(nowMs: number): void {
    this.#answeredMs = nowMs;
    if (this.#consecutiveFailures > 0) this.#runKeys.clear();
    this.#consecutiveFailures = 0;
    if (this.#openedMs !== null) this.#close();
  }

  #close(): void {
    this.#openedMs = null;
    this.#openSinceMs = null;
    this.#onlyKey = null;
    this.#consecutiveFailures = 0;
    this.#runKeys.clear();
    this.#beginWindow(0);
  }

  #failed(nowMs: number, key: string | null): void {
    const { attempts, failures } = this.#window;
    this.#window.failures = failures + 1;
    this.#consecutiveFailures++;
    this.#runKeys.add(key);
    this.#windowKeys.add(key);
    const keys: (string | null)[] = [];
    // A trial that fails opens it anew for whom it was open.
    if (this.#openedMs !== null && this.#isFor(key)) keys.push(this.#onlyKey);
    if (this.#consecutiveFailures >= maxConsecutiveFailures) keys.push(this.#runKeys.onlyKey());
    if (attempts >= minAttempts && (failures + 1) / attempts >= maxFailureShare)
      keys.push(this.#windowKeys.onlyKey());
    const [onlyKey] = keys;
    if (onlyKey === undefined) return;
    this.#onlyKey = keys.includes(null) ? null : onlyKey;
    this.#openSinceMs ??= nowMs;
    this.#openedMs = nowMs;
  }
}

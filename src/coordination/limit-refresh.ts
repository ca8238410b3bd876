import type { Clock } from '../domain/ports/clock.ts';

/** How often the limits of requests that wait are looked at, in milliseconds. */
const refreshMs = 1_000;

/**
 * When the limits of requests that wait for a slot are looked at: at once when they may have changed, and every second as
 * long as some wait. A request may have come with limits from before a change, of which it is told only by the second.
 */
export class LimitRefresh {
  readonly #refresh: () => Promise<void>;
  readonly #hasWaiting: () => boolean;
  readonly #clock: Clock;
  #cancel: (() => void) | null = null;
  #isRefreshing = false;
  /** Whether limits may have changed since the refresh that is under way began. */
  #isOutdated = false;
  #isClosed = false;

  /** `refresh` must not reject. */
  constructor(refresh: () => Promise<void>, hasWaiting: () => boolean, clock: Clock) {
    this.#refresh = refresh;
    this.#hasWaiting = hasWaiting;
    this.#clock = clock;
  }

  /** A request waits from now on. */
  readonly later = (): void => {
    if (this.#cancel !== null || this.#isRefreshing || this.#isClosed || !this.#hasWaiting()) return;
    this.#cancel = this.#clock.schedule(refreshMs, () => void this.#run());
  };

  /** Limits may have changed. */
  readonly now = (): void => {
    this.#isOutdated = true;
    if (!this.#isRefreshing && !this.#isClosed) void this.#run();
  };

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  async #run(): Promise<void> {
    this.#cancel?.();
    this.#cancel = null;
    this.#isRefreshing = true;
    do {
      this.#isOutdated = false;
      await this.#refresh();
    } while (this.#isOutdated && !this.#isClosed);
    this.#isRefreshing = false;
    this.later();
  }
}

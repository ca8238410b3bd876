import type { Clock } from '../domain/ports/clock.ts';

/** How often the limits of requests that wait are looked at, in milliseconds. */
const lookMs = 1_000;

/**
 * When the limits of requests that wait for a slot are looked at: at once when they may have changed, and every second as
 * long as some wait. A request may have come with limits from before a change, of which it is told only by the second.
 */
export class LimitLooks {
  readonly #look: () => Promise<void>;
  readonly #hasWaiting: () => boolean;
  readonly #clock: Clock;
  #cancel: (() => void) | null = null;
  #isLooking = false;
  /** Whether limits may have changed since the look that is under way began. */
  #isOutdated = false;
  #isClosed = false;

  /** `look` must not reject. */
  constructor(look: () => Promise<void>, hasWaiting: () => boolean, clock: Clock) {
    this.#look = look;
    this.#hasWaiting = hasWaiting;
    this.#clock = clock;
  }

  /** A request waits from now on. */
  readonly later = (): void => {
    if (this.#cancel !== null || this.#isLooking || this.#isClosed || !this.#hasWaiting()) return;
    this.#cancel = this.#clock.schedule(lookMs, () => void this.#run());
  };

  /** Limits may have changed. */
  readonly now = (): void => {
    this.#isOutdated = true;
    if (!this.#isLooking && !this.#isClosed) void this.#run();
  };

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  async #run(): Promise<void> {
    this.#cancel?.();
    this.#cancel = null;
    this.#isLooking = true;
    do {
      this.#isOutdated = false;
      await this.#look();
    } while (this.#isOutdated && !this.#isClosed);
    this.#isLooking = false;
    this.later();
  }
}

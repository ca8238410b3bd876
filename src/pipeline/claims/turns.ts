import type { Clock } from '../../domain/ports/clock.ts';
import { within } from '../../domain/time-limit.ts';

/** The turns of a key that are taken, and who waits for the next one that is given back. */
interface TakenTurns {
  count: number;
  next: PromiseWithResolvers<void> | null;
}

/** Turns at something, of which each key may have some at a time. */
export class Turns {
  readonly #most: number;
  readonly #taken = new Map<string, TakenTurns>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Takes a turn; returns what gives it back, or `null` where there is none. */
  take(keyId: string): (() => void) | null {
    const taken = this.#taken.get(keyId) ?? { count: 0, next: null };
    if (taken.count >= this.#most) return null;
    taken.count++;
    this.#taken.set(keyId, taken);
    return () => {
      taken.count--;
      taken.next?.resolve();
      taken.next = null;
      if (taken.count === 0) this.#taken.delete(keyId);
    };
  }

  /** Takes a turn, and waits for one that is given back, for some milliseconds at most each time; `null` where none is. */
  async wait(keyId: string, maxMs: number, clock: Clock): Promise<(() => void) | null> {
    for (;;) {
      const turn = this.take(keyId);
      const taken = this.#taken.get(keyId);
      if (turn !== null || taken === undefined) return turn;
      taken.next ??= Promise.withResolvers();
      if (!(await within(taken.next.promise, maxMs, clock))) return null;
    }
  }
}

import type { Clock } from '../ports/clock.ts';

/** How many pieces of work may wait; the next one is refused at once. */
const maxWaiting = 100;

/** How long a piece of work may wait for its turn, in milliseconds. */
const maxWaitMs = 10_000;

/**
 * How long nothing is done behind a piece of work: so many times as long as it took, up to the most, in milliseconds. However
 * much of it is asked for, it takes a tenth of the time of a thread.
 */
const restRatio = 9;
const maxRestMs = 1_000;

/** How long the answer to work that is refused is held back, in milliseconds, and for how many of them at once. */
const heldBackMs = 1_000;
const maxHeldBack = 1_000;

/** Work that is done one piece at a time, of each owner in turn, with a rest behind each piece. */
export interface TurnQueue {
  /**
   * Resolves with the result of the work, or with `null` if too many wait already or its turn has not come within ten
   * seconds: the work is not begun then. Rejects as the work does.
   */
  run<Result>(owner: string, work: () => Promise<Result>): Promise<Result | null>;
  /** Waits before a refusal is sent: one who asks again at once, and is refused at once, would ask without end. */
  holdBack(): Promise<void>;
}

/** Creates a queue without work. */
export function createTurnQueue(clock: Clock): TurnQueue {
  /** What waits, by owner, in the order in which the owners have their turns. */
  const waiting = new Map<string, Set<() => void>>();
  let count = 0;
  let heldBack = 0;
  let busy = false;

  const remove = (owner: string, begin: () => void): void => {
    const own = waiting.get(owner);
    if (own?.delete(begin) === true) count--;
    if (own?.size === 0) waiting.delete(owner);
  };
  /** Waits for a turn; resolves with false when it has not come in time. */
  const takeTurn = (owner: string): Promise<boolean> => {
    if (!busy) {
      busy = true;
      return Promise.resolve(true);
    }
    if (count >= maxWaiting) return Promise.resolve(false);
    return new Promise((resolve) => {
      const begin = (): void => {
        cancel();
        remove(owner, begin);
        resolve(true);
      };
      const cancel = clock.schedule(maxWaitMs, () => {
        remove(owner, begin);
        resolve(false);
      });
      const own = waiting.get(owner) ?? new Set();
      waiting.set(owner, own.add(begin));
      count++;
    });
  };
  const beginNext = (): void => {
    const [next] = waiting;
    if (next === undefined) {
      busy = false;
      return;
    }
    const [owner, own] = next;
    // What else this owner has waits until all others had a turn.
    waiting.delete(owner);
    waiting.set(owner, own);
    const [begin] = own;
    begin?.();
  };
  return {
    async run(owner, work) {
      if (!(await takeTurn(owner))) return null;
      const startedMs = clock.monotonicMs();
      try {
        return await work();
      } finally {
        const restMs = Math.min(maxRestMs, (clock.monotonicMs() - startedMs) * restRatio);
        if (restMs === 0) beginNext();
        else clock.schedule(restMs, beginNext);
      }
    },
    holdBack() {
      if (heldBack >= maxHeldBack) return Promise.resolve();
      heldBack++;
      return new Promise((resolve) => {
        clock.schedule(heldBackMs, () => {
          heldBack--;
          resolve();
        });
      });
    },
  };
}

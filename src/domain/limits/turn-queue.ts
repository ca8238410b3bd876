import type { Clock } from '../ports/clock.ts';

/** How many pieces of work may wait; the next one is refused at once. */
const maxWaiting = 100;

/** How long a piece of work may wait for its turn, in milliseconds. */
const maxWaitMs = 10_000;

/** Work that is done one piece at a time, in the order in which it came. */
export interface TurnQueue {
  /**
   * Resolves with the result of the work, or with `null` if too many wait already or its turn has not come within ten
   * seconds: the work is not begun then. Rejects as the work does.
   */
  run<Result>(work: () => Promise<Result>): Promise<Result | null>;
}

/** Creates a queue without work. */
export function createTurnQueue(clock: Clock): TurnQueue {
  const waiting = new Set<() => void>();
  let busy = false;

  /** Waits for a turn; resolves with false when it has not come in time. */
  const takeTurn = (): Promise<boolean> => {
    if (!busy) {
      busy = true;
      return Promise.resolve(true);
    }
    if (waiting.size >= maxWaiting) return Promise.resolve(false);
    return new Promise((resolve) => {
      const begin = (): void => {
        cancel();
        resolve(true);
      };
      const cancel = clock.schedule(maxWaitMs, () => {
        waiting.delete(begin);
        resolve(false);
      });
      waiting.add(begin);
    });
  };
  const endTurn = (): void => {
    const [next] = waiting;
    if (next === undefined) busy = false;
    else {
      waiting.delete(next);
      next();
    }
  };
  return {
    async run(work) {
      if (!(await takeTurn())) return null;
      try {
        return await work();
      } finally {
        endTurn();
      }
    },
  };
}

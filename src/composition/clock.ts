import type { Clock } from '../domain/ports.ts';

/** Time as this machine has it. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Calls back again and again, each time once the last call is done; the returned function ends it. */
export function everyNowAndThen(clock: Clock, intervalMs: number, work: () => Promise<void>): () => void {
  let stopped = false;
  let cancel = clock.schedule(intervalMs, again);
  function again(): void {
    void work().then(() => {
      if (!stopped) cancel = clock.schedule(intervalMs, again);
    });
  }
  return () => {
    stopped = true;
    cancel();
  };
}

import type { Clock } from './ports/clock.ts';

/** Waits between two reads, so that other work has its turn; rejects when the reading is to stop. */
export type Pause = () => Promise<void>;

/** Pauses of `delayMs` that reject as soon as the signal is raised. */
export function createPause(clock: Clock, delayMs: number, signal: AbortSignal): Pause {
  return () =>
    new Promise((resolve, reject) => {
      const stop = (): void => {
        cancel();
        reject(signal.reason as Error);
      };
      const cancel = clock.schedule(delayMs, () => {
        signal.removeEventListener('abort', stop);
        resolve();
      });
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    });
}

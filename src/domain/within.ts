import type { Clock } from './ports/clock.ts';

/** Resolves with whether a promise that never rejects is resolved within a time, in milliseconds. */
export function within(done: Promise<void>, limitMs: number, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(limitMs, () => resolve(false));
    void done.then(() => {
      cancel();
      resolve(true);
    });
  });
}

import type { Clock } from './ports/clock.ts';

/** Whether something that never rejects is done within a time, in milliseconds. */
export function within(done: Promise<void>, limitMs: number, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(limitMs, () => resolve(false));
    void done.then(() => {
      cancel();
      resolve(true);
    });
  });
}

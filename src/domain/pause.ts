import type { Clock } from './ports/clock.ts';

/** Waits between two reads, so that other work has its turn; rejects when the reading is to stop. */
export type Pause = () => Promise<void>;

/** Waits for nothing, where little is read or a command alone runs. */
export async function noPause(): Promise<void> {}

/**
 * Reads entries a page at a time, each page behind the last entry of the one before (`null` for the first page), with a pause
 * between two. A page of fewer than `most` entries is the last one; an empty one is not handed out.
 */
export async function* readPages<Entry>(
  read: (last: Entry | null) => Promise<readonly Entry[]>,
  most: number,
  pause: Pause = noPause,
): AsyncGenerator<readonly Entry[]> {
  for (let last: Entry | null = null; ; await pause()) {
    const page: readonly Entry[] = await read(last);
    if (page.length > 0) yield page;
    if (page.length < most) return;
    last = page.at(-1) ?? null;
  }
}

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

import type { Clock } from '../domain/ports/clock.ts';

/** The shortest time between two lines of progress, in milliseconds. */
const intervalMs = 1_000;

/** Moves to the beginning of a terminal's line, and clears it. */
const clearLine = '\r\x1b[K';

/** One line of a terminal that says how far long work has come. */
export interface Progress {
  /** Shows a text, unless another one was shown within the last second. */
  show(text: string): void;
  /** Removes the line, before anything else is printed. */
  clear(): void;
}

/** Writes progress to a terminal; nothing where the output is none, such as a file. */
export function createProgress(
  output: Pick<NodeJS.WriteStream, 'write' | 'isTTY'>,
  clock: Pick<Clock, 'monotonicMs'>,
): Progress {
  let shownMs = -Infinity;
  let isShown = false;
  return {
    show(text) {
      const nowMs = clock.monotonicMs();
      if (!output.isTTY || nowMs - shownMs < intervalMs) return;
      shownMs = nowMs;
      isShown = true;
      output.write(clearLine + text);
    },
    clear() {
      if (isShown) output.write(clearLine);
      isShown = false;
    },
  };
}

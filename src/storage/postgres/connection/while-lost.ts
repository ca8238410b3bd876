import type { Clock } from '../../../domain/ports/clock.ts';

/**
 * How long the first connection is tried again, as while the database starts, in milliseconds; and, from its loss, what a start
 * does on it. Not beside the connections, with which the driver is loaded: SQLite needs none.
 */
export const firstConnectionMs = 10_000;

/** The pause before what was broken off by a lost connection is done anew, in milliseconds. */
const lostPauseMs = 100;

/**
 * Does something at a start that changes all or nothing, and does it anew where its connection was lost in the middle, for a
 * time: a process that ended for it would take a whole gateway with it. All other errors are thrown at once.
 */
export async function whileLost<Done>(
  work: () => Promise<Done>,
  isLost: (error: unknown) => boolean,
  clock: Pick<Clock, 'monotonicMs' | 'schedule'>,
): Promise<Done> {
  let giveUpMs: number | null = null;
  for (;;)
    try {
      return await work();
    } catch (error) {
      giveUpMs ??= clock.monotonicMs() + firstConnectionMs;
      if (!isLost(error) || clock.monotonicMs() >= giveUpMs) throw error;
      await new Promise<void>((resolve) => void clock.schedule(lostPauseMs, resolve));
    }
}

import type { Clock } from '../../src/domain/ports/clock.ts';

/** A clock that stands still until a test advances it. */
export interface FakeClock extends Clock {
  /** Advances the time, and runs all callbacks that become due, in order. */
  advance(durationMs: number): void;
  /** The number of scheduled callbacks. */
  readonly scheduled: number;
  /** In how many milliseconds the next of them is due; `Infinity` without any. */
  readonly nextInMs: number;
}

export function createFakeClock(startMs = 1_800_000_000_000): FakeClock {
  const timers = new Set<{ dueMs: number; callback: () => void }>();
  let elapsedMs = 0;
  const nextDue = (untilMs: number) =>
    [...timers].filter(({ dueMs }) => dueMs <= untilMs).toSorted((a, b) => a.dueMs - b.dueMs)[0];
  return {
    now: () => startMs + elapsedMs,
    monotonicMs: () => elapsedMs,
    schedule(delayMs, callback) {
      const timer = { dueMs: elapsedMs + delayMs, callback };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance(durationMs) {
      const untilMs = elapsedMs + durationMs;
      for (let due = nextDue(untilMs); due !== undefined; due = nextDue(untilMs)) {
        timers.delete(due);
        elapsedMs = due.dueMs;
        due.callback();
      }
      elapsedMs = untilMs;
    },
    get scheduled() {
      return timers.size;
    },
    get nextInMs() {
      let dueMs = Number.POSITIVE_INFINITY;
      for (const timer of timers) dueMs = Math.min(dueMs, timer.dueMs);
      return Math.max(0, dueMs - elapsedMs);
    },
  };
}

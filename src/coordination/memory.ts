import { frequencyWindowMs } from '../domain/limits.ts';
import type { Limits, Standing } from '../domain/limits.ts';
import type { Clock, Limiter } from '../domain/ports.ts';

/** What one key has running, and when its starts of the last 60 seconds were (monotonic milliseconds). */
interface KeyState {
  readonly running: Set<string>;
  starts: number[];
}

/** Limits the keys of a single process. Keys that have been quiet for a whole window are forgotten. */
export function createMemoryLimiter(clock: Clock): Limiter & { close(): void } {
  const states = new Map<string, KeyState>();
  let cancelSweep = clock.schedule(frequencyWindowMs, sweep);

  function sweep(): void {
    for (const [keyId, state] of states) {
      dropOldStarts(state, clock.monotonicMs());
      if (state.running.size === 0 && state.starts.length === 0) states.delete(keyId);
    }
    cancelSweep = clock.schedule(frequencyWindowMs, sweep);
  }

  return {
    async start(keyId, requestId, limits) {
      const nowMs = clock.monotonicMs();
      const state = states.get(keyId) ?? { running: new Set(), starts: [] };
      states.set(keyId, state);
      dropOldStarts(state, nowMs);
      if (state.running.size >= limits.concurrency) return standing('concurrency', state, limits, nowMs);
      if (state.starts.length >= limits.requestsPerMinute) return standing('rate', state, limits, nowMs);
      state.running.add(requestId);
      state.starts.push(nowMs);
      return standing('granted', state, limits, nowMs);
    },
    async release(keyId, requestId) {
      states.get(keyId)?.running.delete(requestId);
    },
    close: () => cancelSweep(),
  };
}

function dropOldStarts(state: KeyState, nowMs: number): void {
  const firstKept = state.starts.findIndex((start) => start > nowMs - frequencyWindowMs);
  if (firstKept !== 0) state.starts = firstKept === -1 ? [] : state.starts.slice(firstKept);
}

function standing(
  verdict: Standing['verdict'],
  { running, starts }: KeyState,
  limits: Limits,
  nowMs: number,
): Standing {
  const oldest = starts[Math.max(0, starts.length - limits.requestsPerMinute)];
  return {
    verdict,
    inFlight: running.size,
    remainingStarts: Math.max(0, limits.requestsPerMinute - starts.length),
    resetMs: oldest === undefined ? 0 : Math.max(0, oldest + frequencyWindowMs - nowMs),
  };
}

import { frequencyWindowMs, maxWaitingRequests } from '../domain/limits.ts';
import type { Limits, LimitDecision } from '../domain/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Limiter } from '../domain/ports/limiter.ts';
import { StartWindow } from './start-window.ts';

/** The requests of one key: those that run, its starts of the last 60 seconds, and those that wait. */
interface KeyState {
  readonly running: Set<string>;
  readonly starts: StartWindow;
  /** In the order of arrival. Each is called when a slot is free, and returns whether it waits no longer. */
  waiting: (() => boolean)[];
}

/** Limits the keys of a single process, in memory. A key without requests for a whole window takes no memory. */
export function createMemoryLimiter(clock: Clock): Limiter & { close(): void } {
  const states = new Map<string, KeyState>();
  let cancelSweep = clock.schedule(frequencyWindowMs, sweep);

  function sweep(): void {
    for (const [keyId, state] of states) {
      state.starts.forgetOld(clock.monotonicMs());
      if (state.running.size === 0 && state.starts.count === 0) states.delete(keyId);
    }
    cancelSweep = clock.schedule(frequencyWindowMs, sweep);
  }

  return {
    async acquire(keyId, requestId, limits, signal) {
      const state = states.get(keyId) ?? { running: new Set(), starts: new StartWindow(), waiting: [] };
      states.set(keyId, state);
      const mayWait = limits.queueWaitMs > 0 && !signal.aborted && state.waiting.length < maxWaitingRequests;
      if (state.waiting.length === 0) {
        const found = take(state, requestId, limits, clock.monotonicMs());
        if (found.verdict !== 'concurrency' || !mayWait) return found;
      } else if (!mayWait) return decision('concurrency', state, limits, clock.monotonicMs());
      return waitInLine(state, requestId, limits, signal, clock);
    },
    async release(keyId, requestId) {
      const state = states.get(keyId);
      if (state?.running.delete(requestId) !== true) return;
      while (state.waiting[0]?.() === true);
    },
    close: () => cancelSweep(),
  };
}

/** Takes a slot and counts a start, or returns which limit is reached. */
function take(state: KeyState, requestId: string, limits: Limits, nowMs: number): LimitDecision {
  state.starts.forgetOld(nowMs);
  if (state.running.size >= limits.concurrency) return decision('concurrency', state, limits, nowMs);
  if (state.starts.count >= limits.requestsPerMinute) return decision('rate', state, limits, nowMs);
  state.running.add(requestId);
  state.starts.add(nowMs);
  return decision('granted', state, limits, nowMs);
}

/** Waits in line until a slot is free, the time is up, or the signal is raised. */
function waitInLine(
  state: KeyState,
  requestId: string,
  limits: Limits,
  signal: AbortSignal,
  clock: Clock,
): Promise<LimitDecision> {
  return new Promise((resolve) => {
    const leave = (found: LimitDecision): void => {
      state.waiting = state.waiting.filter((other) => other !== tryAgain);
      cancel();
      signal.removeEventListener('abort', giveUp);
      resolve(found);
    };
    const giveUp = (): void => leave(decision('concurrency', state, limits, clock.monotonicMs()));
    const tryAgain = (): boolean => {
      const found = take(state, requestId, limits, clock.monotonicMs());
      if (found.verdict === 'concurrency') return false;
      leave(found);
      return true;
    };
    const cancel = clock.schedule(limits.queueWaitMs, giveUp);
    signal.addEventListener('abort', giveUp);
    state.waiting.push(tryAgain);
  });
}

/** The decision for a key as it stands. */
function decision(
  verdict: LimitDecision['verdict'],
  { running, starts }: KeyState,
  limits: Limits,
  nowMs: number,
): LimitDecision {
  const oldest = starts.next(limits.requestsPerMinute);
  return {
    verdict,
    inFlight: running.size,
    remainingStarts: Math.max(0, limits.requestsPerMinute - starts.count),
    // Sums of fractions of a millisecond can come out above the window: 60,000.0000001 ms would be shown as 1m1s.
    resetMs:
      oldest === null ? 0 : Math.min(frequencyWindowMs, Math.max(0, oldest + frequencyWindowMs - nowMs)),
  };
}

import { sumFaults } from '../domain/fault-reports.ts';
import { frequencyWindowMs, maxWaitingRequests } from '../domain/limits/limits.ts';
import type { Limits, LimitDecision } from '../domain/limits/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { FollowingLimiter } from '../domain/ports/limiter.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { LimitRefresh } from './limit-refresh.ts';

/** How many expired starts may precede the others before the list is cut. */
const maxForgotten = 1_024;

/** The moments of one key's starts in the last 60 seconds, oldest first, in monotonic milliseconds. */
class StartWindow {
  #starts: number[] = [];
  /** The index of the first start that still counts. The starts before it are cut off now and then: a start costs O(1). */
  #first = 0;

  get count(): number {
    return this.#starts.length - this.#first;
  }

  add(nowMs: number): void {
    this.#starts.push(nowMs);
  }

  /** Drops the starts that are a whole window old. */
  forgetOld(nowMs: number): void {
    while ((this.#starts[this.#first] ?? Number.POSITIVE_INFINITY) <= nowMs - frequencyWindowMs)
      this.#first++;
    if (this.#first < maxForgotten || this.#first < this.count) return;
    this.#starts = this.#starts.slice(this.#first);
    this.#first = 0;
  }

  /** The start that must leave the window before another one fits under `limit`; `null` when there has been none. */
  next(limit: number): number | null {
    return this.#starts[this.#first + Math.max(0, this.count - limit)] ?? null;
  }
}

/** For how many keys the limits are asked at once. */
const keysPerQuestion = 500;

/** Where the limits in force are found. */
interface LimitSource {
  /** The limits of those of some keys that are stored, by their ids. */
  limitsOf(keyIds: readonly string[]): Promise<ReadonlyMap<string, Limits>>;
  readonly onFault: ReportFault;
}

/** A request that waits for a slot. */
interface WaitingRequest {
  limits: Limits;
  /** Called when a slot may be free; returns whether it waits no longer. */
  tryAgain(): boolean;
}

/** The requests of one key: those that run, its starts of the last 60 seconds, and those that wait. */
interface KeyState {
  readonly running: Set<string>;
  readonly starts: StartWindow;
  /** In the order of arrival. */
  waiting: readonly WaitingRequest[];
}

/**
 * Limits the keys of a single process, in memory. A key without requests for a whole window takes no memory. Without a
 * `source` requests keep the limits with which they came while they wait.
 */
export function createMemoryLimiter(
  clock: Clock,
  source: LimitSource | null = null,
): FollowingLimiter & { close(): void } {
  const states = new Map<string, KeyState>();
  const notFollowed = sumFaults(
    'limits of waiting requests could not be looked up',
    source?.onFault ?? (() => {}),
    clock,
  );
  let cancelSweep = clock.schedule(frequencyWindowMs, sweep);

  function sweep(): void {
    for (const [keyId, state] of states) {
      state.starts.forgetOld(clock.monotonicMs());
      if (state.running.size === 0 && state.starts.count === 0) states.delete(keyId);
    }
    cancelSweep = clock.schedule(frequencyWindowMs, sweep);
  }

  const queues = (): readonly string[] =>
    [...states].flatMap(([keyId, { waiting }]) => (waiting.length === 0 ? [] : [keyId]));
  const limitRefresh =
    source === null
      ? null
      : new LimitRefresh(
          () => followLimits(queues(), states, source).catch(notFollowed),
          () => queues().length > 0,
          clock,
        );

  return {
    async acquire(keyId, requestId, limits, signal) {
      const state = states.get(keyId) ?? { running: new Set(), starts: new StartWindow(), waiting: [] };
      states.set(keyId, state);
      const isPatient = limits.queueWaitMs > 0 && !signal.aborted;
      const isQueueFull = isPatient && state.waiting.length >= maxWaitingRequests;
      const mayWait = isPatient && !isQueueFull;
      if (state.waiting.length === 0) {
        const found = take(state, requestId, limits, clock.monotonicMs());
        if (found.verdict !== 'concurrency' || !mayWait) return found;
      } else if (!mayWait) {
        const refused = decision('concurrency', state, limits, clock.monotonicMs());
        return isQueueFull ? { ...refused, isQueueFull } : refused;
      }
      const ended = waitInQueue(state, requestId, limits, signal, clock);
      limitRefresh?.later();
      return ended;
    },
    // Asking costs no more.
    knownRefusal: () => null,
    async release(keyId, requestId) {
      const state = states.get(keyId);
      if (state?.running.delete(requestId) !== true) return;
      advanceQueue(state);
    },
    limitsChanged: () => limitRefresh?.now(),
    close() {
      limitRefresh?.close();
      cancelSweep();
    },
  };
}

/** Gives the waiting requests of some keys the limits in force, and serves them. */
async function followLimits(
  keyIds: readonly string[],
  states: ReadonlyMap<string, KeyState>,
  source: LimitSource,
): Promise<void> {
  for (let index = 0; index < keyIds.length; index += keysPerQuestion)
    for (const [keyId, limits] of await source.limitsOf(keyIds.slice(index, index + keysPerQuestion))) {
      const state = states.get(keyId);
      if (state === undefined) continue;
      for (const request of state.waiting) request.limits = limits;
      advanceQueue(state);
    }
}

/** Ends the waits at the head of a queue: as many as there are slots for, and those without a start left. */
function advanceQueue(state: KeyState): void {
  while (state.waiting[0]?.tryAgain() === true);
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

/** Waits in the queue until a slot is free, the time is up, or the signal is raised. */
function waitInQueue(
  state: KeyState,
  requestId: string,
  limits: Limits,
  signal: AbortSignal,
  clock: Clock,
): Promise<LimitDecision> {
  return new Promise((resolve) => {
    const leave = (found: LimitDecision): void => {
      state.waiting = state.waiting.filter((other) => other !== request);
      cancel();
      signal.removeEventListener('abort', giveUp);
      resolve(found);
    };
    const giveUp = (): void => leave(decision('concurrency', state, request.limits, clock.monotonicMs()));
    const request: WaitingRequest = {
      limits,
      tryAgain() {
        const found = take(state, requestId, request.limits, clock.monotonicMs());
        if (found.verdict === 'concurrency') return false;
        leave(found);
        return true;
      },
    };
    const cancel = clock.schedule(limits.queueWaitMs, giveUp);
    signal.addEventListener('abort', giveUp);
    state.waiting = [...state.waiting, request];
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

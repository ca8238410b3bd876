import type { Group } from '../domain/limits/groups.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Acquired, FollowingLimiter } from '../domain/ports/limiter.ts';
import type { SlotRequest, SlotStore } from '../domain/ports/slot-store.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { StorageError } from '../domain/storage-refusal.ts';
import { sumFaults } from '../domain/fault-reports.ts';
import { TimeLimit } from '../domain/time-limit.ts';
import { SlotCalls } from './slot-calls.ts';
import { OrphanedSlots } from './orphaned-slots.ts';
import { WaitingRequests } from './waiting-requests.ts';

/** How often the store looks through some keys for starts that are over, in milliseconds. */
const forgetMs = 10_000;

/** How long a request waits for the answer of the store, in milliseconds; it is refused then. */
const takeWaitMs = 3_000;

/** What a shared limiter works with. */
interface SharedLimiterOptions {
  readonly clock: Clock;
  /** Resolves when the store can be used for the first time. */
  readonly ready: Promise<void>;
  readonly onFault: ReportFault;
  /** The limits in force of a key without limits of its own. */
  readonly defaults: () => Limits;
  /** The group that has an id in the config in force; `null` for the id of a key. */
  readonly groupOf: (id: string) => Group | null;
}

/** A limiter over slots that several processes share. */
export interface SharedLimiter extends FollowingLimiter {
  /** The slot of a request was freed with its settlement: it is not to be given back. */
  readonly freed: (keyId: string, requestId: string) => void;
  /** The store is back after an outage: slots that it has forgotten are restored now, and not by the next search. */
  readonly regained: () => void;
  /** Ends its timers; resolves when slots that could not be given back were offered once more. */
  close(): Promise<void>;
}

/**
 * Limits the keys of several processes together. The store decides every start; this process remembers only refusals that
 * can't have changed meanwhile, so that a client that goes on asking costs the database little (`SlotCalls`). A slot whose
 * giving back failed is given back later, as is one that was taken although the answer was lost (`OrphanedSlots`). A request
 * whose place in the queue is gone joins it again (`WaitingRequests`).
 */
export function createSharedLimiter(
  store: SlotStore,
  { clock, ready, onFault, defaults, groupOf }: SharedLimiterOptions,
): SharedLimiter {
  const isReady = whetherDone(ready);
  const slotCalls = new SlotCalls(store, clock);
  const waiting = new WaitingRequests(store, clock, {
    report: onFault,
    defaults,
    groupOf,
    giveBack: (keyId, requestId) => void orphaned.release(keyId, requestId),
  });
  const orphaned = new OrphanedSlots(store, clock, { report: onFault, waiting });
  const notTaken = sumFaults('slots could not be taken: requests are refused', onFault, clock);
  const deciding = { slotCalls, waiting, takeLimit: limitTakes(isReady, clock) };
  const stopForgetting = forgetStarts(store, isReady, clock, onFault);

  return {
    beginsRecords: true,
    async acquire(keyId, requestId, limits, signal, opening = null) {
      // Known from the start: whatever the store has of this request is no leftover while it is asked for.
      orphaned.expect(keyId, requestId);
      try {
        const decision = await takeOrWait(deciding, { keyId, requestId, limits, opening }, signal);
        if (decision.verdict === 'granted') orphaned.granted(requestId);
        else orphaned.forget(requestId);
        return decision;
      } catch (error) {
        orphaned.giveBack(keyId, requestId);
        notTaken(error);
        throw error;
      }
    },
    knownRefusal: (keyId, limits) => slotCalls.knownRefusal(keyId, limits),
    release(keyId, requestId) {
      if (!orphaned.has(requestId)) return Promise.resolve();
      slotCalls.released(keyId);
      return orphaned.release(keyId, requestId);
    },
    freed(keyId, requestId) {
      if (orphaned.freed(requestId)) slotCalls.released(keyId);
    },
    regained: () => orphaned.searchNow(),
    limitsChanged: waiting.limitsChanged,
    async close() {
      stopForgetting();
      waiting.close();
      slotCalls.close();
      await orphaned.close();
    },
  };
}

/** What decides on the slot of a request. */
interface Deciding {
  readonly slotCalls: SlotCalls;
  readonly waiting: WaitingRequests;
  readonly takeLimit: TimeLimit;
}

/** Takes a slot for a request, and waits for one where there is none and its limits allow that. */
async function takeOrWait(
  { slotCalls, waiting, takeLimit }: Deciding,
  request: Omit<SlotRequest, 'mayWait'>,
  signal: AbortSignal,
): Promise<Acquired> {
  const { keyId, limits } = request;
  const mayWait = limits.queueWaitMs > 0 && !signal.aborted;
  const found = await takeLimit.bound(async (wait) => {
    const answer = await slotCalls.take({ ...request, mayWait });
    // The request was refused meanwhile, and gives its slot back.
    if (wait.isOver && answer === 'waiting') slotCalls.waitEnded(keyId, false);
    else if (wait.isOver && answer !== 'waiting' && answer.verdict === 'granted') slotCalls.released(keyId);
    return answer;
  });
  // Of requests that may wait the store refuses those alone for which the queue has no place.
  if (found !== 'waiting')
    return mayWait && found.verdict === 'concurrency' ? { ...found, isQueueFull: true } : found;
  let hasSlot = false;
  try {
    const decision = await waiting.wait(request, signal);
    hasSlot = decision.verdict === 'granted';
    return decision;
  } finally {
    slotCalls.waitEnded(keyId, hasSlot);
  }
}

/** Returns a function that says whether a promise has been fulfilled. */
function whetherDone(promise: Promise<void>): () => boolean {
  let isDone = false;
  promise.then(
    () => (isDone = true),
    () => {},
  );
  return () => isDone;
}

/** Bounds how long a request waits for the answer of the store. */
function limitTakes(isReady: () => boolean, clock: Clock): TimeLimit {
  return new TimeLimit(takeWaitMs, clock, () =>
    isReady()
      ? new StorageError('the database takes too long to decide on a slot', 'slow')
      : new StorageError('the database is not open yet'),
  );
}

/**
 * Has the store forget the old starts of keys that have no requests any more, some keys at a time. A store that was never
 * open is not asked: its faults would be reported beside the reason why the process can't start.
 */
function forgetStarts(
  store: SlotStore,
  isReady: () => boolean,
  clock: Clock,
  onFault: ReportFault,
): () => void {
  const notForgotten = sumFaults('old starts could not be removed', onFault, clock);
  let isStopped = false;
  let cancel = clock.schedule(forgetMs, () => void forgetSome(''));
  async function forgetSome(afterKeyId: string): Promise<void> {
    const last = isReady()
      ? await store.forgetStarts(afterKeyId).catch((error: unknown) => {
          notForgotten(error);
          return afterKeyId;
        })
      : afterKeyId;
    if (!isStopped) cancel = clock.schedule(forgetMs, () => void forgetSome(last ?? ''));
  }
  return () => {
    isStopped = true;
    cancel();
  };
}

import { frequencyWindowMs } from '../../src/domain/limits/limits.ts';
import type { LimitDecision, Limits } from '../../src/domain/limits/limits.ts';
import type { EndedWait, SlotRequest, SlotStore } from '../../src/domain/ports/slot-store.ts';
import { override } from '../../src/shared/override.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';

interface Place extends SlotRequest {
  readonly owner: string;
  /** A slot that was forgotten, of a request that has run since before. */
  readonly isRestored?: true;
}

/** Slots, starts and queues as the database keeps them, in plain lists: what the functions in SQL must do. */
export interface MemorySlots {
  /** What a process sees of them under its lease. */
  storeOf(owner: () => string): SlotStore;
  readonly slots: readonly Place[];
  readonly waiting: readonly Place[];
}

/**
 * `nowMs` is the time of the database, `hasLease` what it says of an owner, `isEnded` that its lease was ended, and
 * `limitsOf` the own limits of a key; `null` for one that is not stored.
 */
export function createMemorySlots(
  nowMs: () => number,
  hasLease: (owner: string) => boolean = () => true,
  isEnded: (owner: string) => boolean = () => false,
  limitsOf: (keyId: string) => Partial<Limits> | null = () => null,
): MemorySlots {
  let slots: readonly Place[] = [];
  let waiting: readonly Place[] = [];
  let starts: readonly { readonly keyId: string; readonly atMs: number }[] = [];
  let ended: (EndedWait & { readonly owner: string })[] = [];

  const startsOf = (keyId: string): readonly number[] =>
    starts
      .filter((start) => start.keyId === keyId && start.atMs > nowMs() - frequencyWindowMs)
      .map(({ atMs }) => atMs);
  const runningOf = (keyId: string): number => slots.filter((slot) => slot.keyId === keyId).length;
  const describe = (
    verdict: LimitDecision['verdict'],
    keyId: string,
    { requestsPerMinute }: SlotRequest['limits'],
  ): LimitDecision => {
    const recent = startsOf(keyId);
    const oldest = recent[Math.max(0, recent.length - requestsPerMinute)];
    return {
      verdict,
      inFlight: runningOf(keyId),
      remainingStarts: Math.max(0, requestsPerMinute - recent.length),
      resetMs: oldest === undefined ? 0 : oldest + frequencyWindowMs - nowMs(),
    };
  };
  const grant = (place: Place): LimitDecision => {
    slots = [...slots, place];
    const recent = starts.filter(({ atMs }) => atMs > nowMs() - frequencyWindowMs);
    starts = [...recent, { keyId: place.keyId, atMs: nowMs() }];
    return describe('granted', place.keyId, place.limits);
  };
  const advanceQueue = (keyId: string): void => {
    for (;;) {
      const head = waiting.find((place) => place.keyId === keyId);
      if (head === undefined || runningOf(keyId) >= head.limits.concurrency) return;
      waiting = waiting.filter((place) => place !== head);
      const isSpent = startsOf(keyId).length >= head.limits.requestsPerMinute;
      const decision = isSpent ? describe('rate', keyId, head.limits) : grant(head);
      ended.push({ owner: head.owner, requestId: head.requestId, decision });
    }
  };
  const takeEnded = (owner: string): readonly EndedWait[] => {
    const mine = ended.filter((wait) => wait.owner === owner);
    ended = ended.filter((wait) => wait.owner !== owner);
    return mine.map(({ requestId, decision }) => ({ requestId, decision }));
  };

  const take = (request: SlotRequest, owner: string): LimitDecision | 'waiting' => {
    const { keyId, limits, mayWait } = request;
    if (!hasLease(owner)) throw new StorageError('no lease');
    const queue = waiting.filter((place) => place.keyId === keyId).length;
    const isFree = queue === 0 && runningOf(keyId) < limits.concurrency;
    if (isFree && startsOf(keyId).length < limits.requestsPerMinute) return grant({ ...request, owner });
    if (isFree) return describe('rate', keyId, limits);
    if (!mayWait || queue >= 100) return describe('concurrency', keyId, limits);
    waiting = [...waiting, { ...request, owner }];
    return 'waiting';
  };
  const free = (keyId: string, isFreed: (place: Place) => boolean): number => {
    const before = slots.length + waiting.length;
    slots = slots.filter((place) => place.keyId !== keyId || !isFreed(place));
    waiting = waiting.filter((place) => place.keyId !== keyId || !isFreed(place));
    const freed = before - slots.length - waiting.length;
    advanceQueue(keyId);
    return freed;
  };

  const followLimits = (
    owner: string,
    defaults: Pick<Limits, 'concurrency' | 'requestsPerMinute'>,
    groups: ReadonlyMap<string, number>,
  ): number => {
    const changed = new Set<string>();
    waiting = waiting.map((place) => {
      const slotsOfGroup = place.owner === owner ? groups.get(place.keyId) : undefined;
      const own =
        slotsOfGroup === undefined
          ? limitsOf(place.keyId)
          : { concurrency: slotsOfGroup, requestsPerMinute: place.limits.requestsPerMinute };
      if (own === null) return place;
      const { concurrency, requestsPerMinute } = override(
        place.owner === owner ? defaults : place.limits,
        own,
      );
      const { limits } = place;
      if (concurrency === limits.concurrency && requestsPerMinute === limits.requestsPerMinute) return place;
      changed.add(place.keyId);
      return { ...place, limits: { ...limits, concurrency, requestsPerMinute } };
    });
    for (const keyId of [...changed].toSorted()) advanceQueue(keyId);
    return changed.size;
  };

  return {
    get slots() {
      return slots;
    },
    get waiting() {
      return waiting;
    },
    storeOf: (owner) => ({
      owner,
      take: async (request) => take(request, owner()),
      async release(keyId, requestId) {
        // Where none waited no wait has ended by it: those that ended before are found by `endedWaits`.
        const hadQueue = waiting.some((place) => place.keyId === keyId);
        // Of a request that has its slot, the end of its wait may come later: it waits for none any more.
        const hadSlot = slots.some((slot) => slot.requestId === requestId && slot.keyId === keyId);
        if (!hadSlot) ended = ended.filter((wait) => wait.requestId !== requestId);
        free(keyId, (place) => place.requestId === requestId);
        return hadQueue ? takeEnded(owner()) : [];
      },
      followLimits: async (defaults, groups) => followLimits(owner(), defaults, groups),
      endedWaits: async () => takeEnded(owner()),
      async leave({ keyId, requestId, limits }) {
        const left = waiting.find((place) => place.requestId === requestId);
        waiting = waiting.filter((place) => place !== left);
        advanceQueue(keyId);
        const found = ended.find((wait) => wait.requestId === requestId);
        ended = ended.filter((wait) => wait !== found);
        if (found !== undefined) return found.decision;
        const hasSlot = slots.some((slot) => slot.requestId === requestId);
        return describe(hasSlot ? 'granted' : 'concurrency', keyId, left?.limits ?? limits);
      },
      held: async () => [...slots, ...waiting].filter((place) => place.owner === owner()),
      async restore(keyId, requestIds) {
        const missing = requestIds.filter((id) => slots.every(({ requestId }) => requestId !== id));
        if (!hasLease(owner())) return 0;
        const limits = { concurrency: 0, requestsPerMinute: 0, queueWaitMs: 0 };
        const restored = missing.map((requestId) => ({
          keyId,
          requestId,
          limits,
          mayWait: false,
          owner: owner(),
          isRestored: true as const,
        }));
        slots = [...slots, ...restored];
        return missing.length;
      },
      async freeLost() {
        ended = ended.filter((wait) => !isEnded(wait.owner));
        const lost = [...slots, ...waiting].filter((place) => isEnded(place.owner));
        const keys = [...new Set(lost.map(({ keyId }) => keyId))].toSorted();
        return keys.reduce((count, keyId) => count + free(keyId, (place) => isEnded(place.owner)), 0);
      },
      forgetStarts: async () => null,
    }),
  };
}

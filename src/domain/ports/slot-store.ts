import type { LimitDecision, Limits } from '../limits/limits.ts';
import type { OpenedRecord } from '../money/consumption.ts';
import type { Acquired } from './limiter.ts';

/** A request that asks for a slot of its key. */
export interface SlotRequest {
  readonly keyId: string;
  readonly requestId: string;
  readonly limits: Limits;
  /** Whether it takes a place in the queue when all slots are taken. */
  readonly mayWait: boolean;
  /** The record that is begun with its slot, if it gets one at once; a request that may wait has none. */
  readonly opening?: OpenedRecord | null;
}

/** A request that has a slot of its key, or a place in the queue for one. */
export interface SlotHolder {
  readonly keyId: string;
  readonly requestId: string;
}

/** The end of a wait in the queue. */
export interface EndedWait {
  readonly requestId: string;
  readonly decision: LimitDecision;
}

/**
 * The slots, starts and queues of all keys, where every node sees the same. Each call is one atomic step, in the database's
 * time, and rejects with a `StorageError` when the database fails: the step may have been done then. A slot belongs to the
 * lease of the process that took it; a process without a lease gets none.
 */
export interface SlotStore {
  /** The owner of what this process takes now: another one once its lease was ended, with which all its places were freed. */
  owner(): string;
  /**
   * Takes a slot, counts a start and begins the request's record, or takes a place in the queue (`waiting`), or does neither. A
   * record whose beginning the store has to ask for first is not begun.
   */
  take(request: SlotRequest): Promise<Acquired | 'waiting'>;
  /**
   * Gives back what a request has: a slot, which goes to the first in the queue, or a place there. A second time changes
   * nothing. Resolves with the waits of this process that ended, in the order of the queue.
   */
  release(keyId: string, requestId: string): Promise<readonly EndedWait[]>;
  /** The waits of this process that ended since the last call, as by a release on another node. */
  endedWaits(): Promise<readonly EndedWait[]>;
  /**
   * Gives requests that wait the limits that are stored for their keys, and serves those for which a slot is free then.
   * Where a key has no limit of its own, the requests of this process get the default; those of others keep what they
   * have. `groups` are the slots of groups by their ids: requests of this process that wait for one get these. Resolves with
   * how many queues it changed: a limited number at a time, and none that another session has locked.
   */
  followLimits(
    defaults: Pick<Limits, 'concurrency' | 'requestsPerMinute'>,
    groups: ReadonlyMap<string, number>,
  ): Promise<number>;
  /** Gives up a wait; resolves with what was decided before, or with `concurrency` by the limits that it has by then. */
  leave(request: Omit<SlotRequest, 'mayWait'>): Promise<LimitDecision>;
  /** The requests that have a slot or wait for one under the lease of this process. */
  held(): Promise<readonly SlotHolder[]>;
  /**
   * Gives requests of a key that run the slots which the database has forgotten, whatever its limits: one that has its slot
   * keeps it. Resolves with how many were forgotten.
   */
  restore(keyId: string, requestIds: readonly string[]): Promise<number>;
  /**
   * Frees the slots and places of processes whose lease has ended, in steps of some keys each; resolves with how many there
   * were. Keys that another session has locked are left to the next call.
   */
  freeLost(): Promise<number>;
  /** Forgets starts that are over, of some idle keys behind one; resolves with the last of those, `null` behind the last. */
  forgetStarts(afterKeyId: string): Promise<string | null>;
}

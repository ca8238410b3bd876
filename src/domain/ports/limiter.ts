import type { LimitDecision, Limits } from '../limits/limits.ts';
import type { OpenedRecord, Reservation } from '../money/consumption.ts';

/** The decision on a slot. */
export interface Acquired extends LimitDecision {
  /** What was set aside for a record that was begun, or refused, in the same step; absent where it is to be begun by itself. */
  readonly reservation?: Reservation;
}

/** Limits of keys: requests in progress and starts, counted in one atomic step. */
export interface Limiter {
  /**
   * Takes a slot and counts a start, or does neither. A granted slot is held under `requestId`. Where all slots are
   * taken it waits as long as the limits allow, or until `signal` is raised; first come, first served. While it waits it
   * gets the limits that are in force of its key, if that is stored: all but how long it may wait. Rejects with a
   * `StorageError` where the slots are in a database that is away, which the limiter has reported. A limiter that begins records
   * begins `opening` in the same step, where the request does not wait.
   */
  acquire(
    keyId: string,
    requestId: string,
    limits: Limits,
    signal: AbortSignal,
    opening?: OpenedRecord | null,
  ): Promise<Acquired>;
  /** Whether it can begin a record with a slot, whose settlement then frees it. */
  readonly beginsRecords?: boolean;
  /**
   * The refusal that a request which does not wait would get, as far as it is known without asking a database; `null` where
   * it has to ask.
   */
  knownRefusal(keyId: string, limits: Limits): LimitDecision | null;
  /** Gives the slot back. A second release of the same slot changes nothing. */
  release(keyId: string, requestId: string): Promise<void>;
}

/** A limiter whose requests can wait, so that limits can change for them. */
export interface FollowingLimiter extends Limiter {
  /** Limits may have changed: they are looked up at once for all requests that wait, rather than within a second. */
  limitsChanged(): void;
}

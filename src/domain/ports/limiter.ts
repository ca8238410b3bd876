import type { LimitDecision, Limits } from '../limits.ts';

/** Limits of keys: requests in progress and starts, counted in one atomic step. */
export interface Limiter {
  /**
   * Takes a slot and counts a start, or does neither. A granted slot is held under `requestId`. Where all slots are
   * taken it waits as long as the limits allow, or until `signal` is raised; first come, first served. Rejects with a
   * `StorageError` where the slots are in a database that is away, which the limiter has reported.
   */
  acquire(keyId: string, requestId: string, limits: Limits, signal: AbortSignal): Promise<LimitDecision>;
  /** Gives the slot back. A second release of the same slot changes nothing. */
  release(keyId: string, requestId: string): Promise<void>;
}

import type { LimitDecision, Limits } from '../limits.ts';

/** Who may run: requests in progress and starts per key, counted in one atomic step. */
export interface Limiter {
  /**
   * Takes a slot and counts a start, or does neither. A granted slot is held under `requestId`. Where all slots are
   * taken it waits as long as the limits say, or until `signal` is raised; first come, first served.
   */
  acquire(keyId: string, requestId: string, limits: Limits, signal: AbortSignal): Promise<LimitDecision>;
  /** Gives the slot back; harmless when it was given back before. */
  release(keyId: string, requestId: string): Promise<void>;
}

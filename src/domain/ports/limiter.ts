import type { LimitDecision, Limits } from '../limits.ts';

/** Limits requests in progress and starts per key, both counted in one atomic step. */
export interface Limiter {
  /**
   * Takes a slot and counts a start, or does neither. A granted slot is held under `requestId`. When all slots are
   * taken, waits up to the key's `queueWaitMs`, or until `signal` is raised; first come, first served.
   */
  acquire(keyId: string, requestId: string, limits: Limits, signal: AbortSignal): Promise<LimitDecision>;
  /** Releases the slot; harmless when it was released before. */
  release(keyId: string, requestId: string): Promise<void>;
}

import type { LimitDecision } from '../domain/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { EndedWait, SlotRequest, SlotStore } from '../domain/ports/slot-store.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { sumFaults } from '../domain/summed-fault.ts';

/** How often the store is asked for waits that ended, while requests wait, in milliseconds. */
const pollMs = 100;

interface WaitingOptions {
  readonly report: ReportFault;
  /** Gives back what a request may have. */
  readonly giveBack: (keyId: string, requestId: string) => void;
}

/** The requests of this process that wait in the lines of their keys. */
export class WaitingRequests {
  readonly #store: SlotStore;
  readonly #clock: Clock;
  readonly #giveBack: WaitingOptions['giveBack'];
  readonly #pollFailed: (error: unknown) => void;
  /** By request: each is called with the end of its wait. */
  readonly #waiting = new Map<string, (decision: LimitDecision) => void>();
  #cancelPoll: (() => void) | null = null;
  #isClosed = false;

  constructor(store: SlotStore, clock: Clock, { report, giveBack }: WaitingOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#giveBack = giveBack;
    this.#pollFailed = sumFaults('waits for slots could not be followed', report, clock);
  }

  /**
   * Resolves with the end of a wait: when the store decides it, when its time is up, or when the signal is raised. Rejects
   * when the store can't be asked what became of it.
   */
  wait(request: Omit<SlotRequest, 'mayWait'>, signal: AbortSignal): Promise<LimitDecision> {
    const { keyId, requestId, limits } = request;
    const { promise, resolve, reject } = Promise.withResolvers<LimitDecision>();
    const stop = (): void => {
      cancel();
      signal.removeEventListener('abort', leave);
      this.#waiting.delete(requestId);
    };
    const leave = (): void => {
      // A decision that is on its way is found by `leave`, too.
      stop();
      this.#store.leave(request).then((decision) => {
        if (!signal.aborted || decision.verdict !== 'granted') return resolve(decision);
        this.#giveBack(keyId, requestId);
        return resolve({ ...decision, verdict: 'concurrency' });
      }, reject);
    };
    const cancel = this.#clock.schedule(limits.queueWaitMs, leave);
    signal.addEventListener('abort', leave);
    this.#waiting.set(requestId, (decision) => {
      stop();
      resolve(decision);
    });
    if (signal.aborted) leave();
    this.#pollLater();
    return promise;
  }

  /** Ends waits that the store has decided. */
  readonly end = (ended: readonly EndedWait[]): void => {
    for (const { requestId, decision } of ended) this.#waiting.get(requestId)?.(decision);
  };

  close(): void {
    this.#isClosed = true;
    this.#cancelPoll?.();
  }

  #pollLater(): void {
    if (this.#waiting.size === 0 || this.#isClosed) return;
    this.#cancelPoll ??= this.#clock.schedule(pollMs, () => void this.#poll());
  }

  async #poll(): Promise<void> {
    try {
      this.end(await this.#store.endedWaits());
    } catch (error) {
      this.#pollFailed(error);
    }
    this.#cancelPoll = null;
    this.#pollLater();
  }
}

import type { LimitDecision, Limits } from '../domain/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { EndedWait, SlotRequest, SlotStore } from '../domain/ports/slot-store.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { sumFaults } from '../domain/summed-fault.ts';
import { LimitLooks } from './limit-looks.ts';

/** How often the store is asked for waits that ended, while requests wait, in milliseconds. */
const pollMs = 100;

interface WaitingOptions {
  readonly report: ReportFault;
  /** The limits in force of a key without limits of its own. */
  readonly defaults: () => Limits;
  /** Gives back what a request may have. */
  readonly giveBack: (keyId: string, requestId: string) => void;
}

/** The requests of this process that wait in the lines of their keys. */
export class WaitingRequests {
  readonly #store: SlotStore;
  readonly #clock: Clock;
  readonly #giveBack: WaitingOptions['giveBack'];
  readonly #pollFailed: (error: unknown) => void;
  readonly #looks: LimitLooks;
  /** By request: each is called with the end of its wait. */
  readonly #waiting = new Map<string, (decision: LimitDecision) => void>();
  #cancelPoll: (() => void) | null = null;
  #isClosed = false;

  constructor(store: SlotStore, clock: Clock, { report, defaults, giveBack }: WaitingOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#giveBack = giveBack;
    this.#pollFailed = sumFaults('waits for slots could not be followed', report, clock);
    const notFollowed = sumFaults('limits of waiting requests could not be looked up', report, clock);
    this.#looks = new LimitLooks(
      () => store.followLimits(defaults()).then(() => {}, notFollowed),
      () => this.#waiting.size > 0,
      clock,
    );
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
    this.#looks.later();
    return promise;
  }

  /** Ends waits that the store has decided. */
  readonly end = (ended: readonly EndedWait[]): void => {
    for (const { requestId, decision } of ended) this.#waiting.get(requestId)?.(decision);
  };

  /** Limits may have changed: those of the requests that wait are made the ones in force. */
  readonly limitsChanged = (): void => this.#looks.now();

  close(): void {
    this.#isClosed = true;
    this.#looks.close();
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

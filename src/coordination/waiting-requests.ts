import { limitsOfGroup } from '../domain/limits/groups.ts';
import type { Group } from '../domain/limits/groups.ts';
import type { LimitDecision, Limits } from '../domain/limits/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { EndedWait, SlotRequest, SlotStore } from '../domain/ports/slot-store.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { StorageError } from '../domain/storage-refusal.ts';
import { sumFaults } from '../domain/fault-reports.ts';
import { LimitRefresh } from './limit-refresh.ts';

/** How often the store is asked for waits that ended, while requests wait, in milliseconds. */
const pollMs = 100;

/** The pause before a request that could not join the queue again tries it once more, in milliseconds. */
const joinMs = 1_000;

interface WaitingOptions {
  readonly report: ReportFault;
  /** The limits in force of a key without limits of its own. */
  readonly defaults: () => Limits;
  /** The group that has an id in the config in force; `null` for the id of a key. */
  readonly groupOf: (id: string) => Group | null;
  /** Gives back what a request may have. */
  readonly giveBack: (keyId: string, requestId: string) => void;
}

/** A request that waits. */
interface Wait {
  readonly request: SlotRequest;
  /** Ends it. */
  readonly end: (decision: LimitDecision) => void;
  /** Whose place it has. */
  owner: string;
  hasPlace: boolean;
  /** The last call that may still say something of an earlier place. */
  lastEarlierCall: number;
  /** Resolves when an attempt to join the queue again is over; `null` while there is none. */
  joining: Promise<void> | null;
  cancelNextJoin: () => void;
  isOver: boolean;
}

/**
 * The requests of this process that wait in the queues of their keys. One whose place is gone, as with the lease of this
 * process or by a crash of the database, joins the queue again, at its end, for what is left of its time.
 */
export class WaitingRequests {
  readonly #store: SlotStore;
  readonly #clock: Clock;
  readonly #giveBack: WaitingOptions['giveBack'];
  readonly #pollFailed: (error: unknown) => void;
  readonly #limitRefresh: LimitRefresh;
  readonly #joinFailed: (error: unknown) => void;
  /** By request. */
  readonly #waiting = new Map<string, Wait>();
  /** How many calls that tell of ended waits, or of places, were begun. */
  #calls = 0;
  #cancelPoll: (() => void) | null = null;
  #isClosed = false;

  constructor(store: SlotStore, clock: Clock, { report, defaults, groupOf, giveBack }: WaitingOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#giveBack = giveBack;
    this.#pollFailed = sumFaults('waits for slots could not be followed', report, clock);
    this.#joinFailed = sumFaults('requests could not join a queue again', report, clock);
    const notFollowed = sumFaults('limits of waiting requests could not be looked up', report, clock);
    this.#limitRefresh = new LimitRefresh(
      () => store.followLimits(defaults(), this.#groupSlots(groupOf)).then(() => {}, notFollowed),
      () => this.#waiting.size > 0,
      clock,
    );
  }

  /**
   * Resolves with the end of a wait: when the store decides it, when its time is up, or when the signal is raised. Rejects
   * when the store can't be asked what became of it, and when its time is up while it has no place in the queue.
   */
  wait(request: Omit<SlotRequest, 'mayWait'>, signal: AbortSignal): Promise<LimitDecision> {
    const { keyId, requestId, limits } = request;
    const { promise, resolve, reject } = Promise.withResolvers<LimitDecision>();
    const stop = (): void => {
      cancel();
      signal.removeEventListener('abort', leave);
      this.#waiting.delete(requestId);
      wait.isOver = true;
      wait.cancelNextJoin();
    };
    const leave = (): void => {
      // A decision that is on its way is found by `leave`, too; a place that is being taken only behind that.
      stop();
      const left = wait.joining?.then(() => this.#store.leave(request)) ?? this.#store.leave(request);
      left.then((decision) => {
        if (decision.verdict !== 'granted' && !wait.hasPlace && !signal.aborted)
          return reject(new StorageError('the database has lost the place of a request in the queue'));
        if (!signal.aborted || decision.verdict !== 'granted') return resolve(decision);
        this.#giveBack(keyId, requestId);
        return resolve({ ...decision, verdict: 'concurrency' });
      }, reject);
    };
    const wait: Wait = {
      request: { ...request, mayWait: true },
      end(decision) {
        stop();
        resolve(decision);
      },
      owner: this.#store.owner(),
      hasPlace: true,
      lastEarlierCall: 0,
      joining: null,
      cancelNextJoin() {},
      isOver: false,
    };
    const cancel = this.#clock.schedule(limits.queueWaitMs, leave);
    signal.addEventListener('abort', leave);
    this.#waiting.set(requestId, wait);
    if (signal.aborted) leave();
    this.#pollLater();
    this.#limitRefresh.later();
    return promise;
  }

  /** Called before a call that ends waits: returns what takes those that the store has decided. */
  follow(): (ended: readonly EndedWait[]) => void {
    const call = ++this.#calls;
    return (ended) => {
      for (const { requestId, decision } of ended) {
        const wait = this.#waiting.get(requestId);
        // What a late answer says of an earlier place, which was given up, does not hold for the present one.
        if (wait !== undefined && wait.lastEarlierCall < call) wait.end(decision);
      }
    };
  }

  /**
   * Called before the store is asked of which requests it has something: returns what takes them. Those that waited before,
   * and are not among them, join the queue again.
   */
  compare(): (held: ReadonlySet<string>) => void {
    const call = ++this.#calls;
    const placed = [...this.#waiting.values()].filter(({ hasPlace }) => hasPlace);
    return (held) => {
      for (const wait of placed)
        if (!held.has(wait.request.requestId) && wait.lastEarlierCall < call) this.#joinAgain(wait);
    };
  }

  /** Limits may have changed: those of the requests that wait are made the ones in force. */
  readonly limitsChanged = (): void => this.#limitRefresh.now();

  close(): void {
    this.#isClosed = true;
    this.#limitRefresh.close();
    this.#cancelPoll?.();
  }

  /** The slots of the groups for which requests wait here, by their ids. */
  #groupSlots(groupOf: WaitingOptions['groupOf']): ReadonlyMap<string, number> {
    const groups = [...this.#waiting.values()].map(({ request }) => groupOf(request.keyId));
    return new Map(
      groups.flatMap((group) => (group === null ? [] : [[group.id, limitsOfGroup(group, 0).concurrency]])),
    );
  }

  #pollLater(): void {
    if (this.#waiting.size === 0 || this.#isClosed) return;
    this.#cancelPoll ??= this.#clock.schedule(pollMs, () => void this.#poll());
  }

  async #poll(): Promise<void> {
    const owner = this.#store.owner();
    for (const wait of this.#waiting.values()) if (wait.owner !== owner) this.#joinAgain(wait);
    const end = this.follow();
    try {
      end(await this.#store.endedWaits());
    } catch (error) {
      this.#pollFailed(error);
    }
    this.#cancelPoll = null;
    this.#pollLater();
  }

  #joinAgain(wait: Wait): void {
    if (wait.isOver || !wait.hasPlace) return;
    wait.hasPlace = false;
    this.#tryToJoin(wait);
  }

  #tryToJoin(wait: Wait): void {
    wait.joining = this.#join(wait).then(
      () => {},
      (error: unknown) => {
        this.#joinFailed(error);
        if (wait.isOver || this.#isClosed) return;
        wait.cancelNextJoin = this.#clock.schedule(joinMs, () => this.#tryToJoin(wait));
      },
    );
  }

  async #join(wait: Wait): Promise<void> {
    const { request } = wait;
    wait.lastEarlierCall = Number.POSITIVE_INFINITY;
    const end = this.follow();
    // An earlier place may still be there, under the lease that was ended: the queue must not have the request twice.
    end(await this.#store.release(request.keyId, request.requestId));
    wait.lastEarlierCall = this.#calls;
    if (wait.isOver) return;
    const owner = this.#store.owner();
    const answer = await this.#store.take(request);
    wait.owner = owner;
    wait.hasPlace = true;
    wait.joining = null;
    if (answer !== 'waiting' && !wait.isOver) wait.end(answer);
  }
}

import type { Clock } from '../domain/ports/clock.ts';
import type { SlotStore } from '../domain/ports/slot-store.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { StorageError } from '../domain/storage-refusal.ts';
import { sumFaults } from '../domain/fault-reports.ts';
import { TimeLimit } from '../domain/time-limit.ts';
import type { WaitingRequests } from './waiting-requests.ts';

/** How long the end of a request waits for its slot to be given back, in milliseconds; it is given back later then. */
const releaseWaitMs = 1_000;

/** The pause before slots that could not be given back are offered again, in milliseconds. */
const retryMs = 1_000;

/** How many such slots are remembered; the search finds the others. */
const maxOrphaned = 10_000;

/** How often the store is searched for slots without a request or a lease, in milliseconds. */
const searchMs = 15_000;

interface OrphanedSlotsOptions {
  readonly report: ReportFault;
  /** The requests that wait: they end by slots that are given back, and a search may miss their places. */
  readonly waiting: Pick<WaitingRequests, 'follow' | 'compare'>;
}

/** For how many keys slots are restored at once. */
const restoredAtOnce = 50;

/** A request of this process that asks for a slot, or has one. */
interface Request {
  readonly keyId: string;
  hasSlot: boolean;
  /** Whether the store was asked to restore its slot. */
  wasRestored: boolean;
}

/**
 * The requests of this process that have a slot, or ask for one, and the orphaned slots: those that the store did not
 * take back, and those that it gave although its answer was lost. A search finds slots without a request, and requests without
 * their slot, which a crash of the database may forget.
 */
export class OrphanedSlots {
  readonly #store: SlotStore;
  readonly #clock: Clock;
  readonly #waiting: OrphanedSlotsOptions['waiting'];
  readonly #notReleased: (error: unknown) => void;
  readonly #notRestored: (error: unknown) => void;
  readonly #releaseLimit: TimeLimit;
  readonly #requests = new Map<string, Request>();
  /** Slots to give back, with their keys, by their requests. */
  readonly #orphaned = new Map<string, string>();
  #cancelRetry: (() => void) | null = null;
  #cancelSearch: () => void;
  /** Whether a search runs, and another one is to follow it at once. */
  #isSearching = false;
  #searchesAgain = false;
  #isClosed = false;

  constructor(store: SlotStore, clock: Clock, { report, waiting }: OrphanedSlotsOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#waiting = waiting;
    this.#notReleased = sumFaults('slots could not be given back: they are given back later', report, clock);
    this.#notRestored = sumFaults(
      'slots of running requests could not be restored: they are restored later',
      report,
      clock,
    );
    this.#releaseLimit = new TimeLimit(
      releaseWaitMs,
      clock,
      () => new StorageError('the database takes too long to take a slot back', 'slow'),
    );
    this.#cancelSearch = clock.schedule(searchMs, () => void this.#search());
  }

  /** A request asks for a slot from now on. */
  expect(keyId: string, requestId: string): void {
    this.#requests.set(requestId, { keyId, hasSlot: false, wasRestored: false });
  }

  /** A request has a slot from now on. */
  granted(requestId: string): void {
    const request = this.#requests.get(requestId);
    if (request !== undefined) request.hasSlot = true;
  }

  /** A request was refused: it has no slot. */
  forget(requestId: string): void {
    this.#requests.delete(requestId);
  }

  /**
   * The slot of a request was freed with its settlement; returns whether it is given back thereby. One that was restored
   * meanwhile, as the store did not show it any more, may be there again.
   */
  freed(requestId: string): boolean {
    return this.#requests.get(requestId)?.wasRestored === false && this.#requests.delete(requestId);
  }

  has(requestId: string): boolean {
    return this.#requests.has(requestId);
  }

  /** Gives the slot of a request back. Resolves when that is done, or is put off. */
  async release(keyId: string, requestId: string): Promise<void> {
    this.#requests.delete(requestId);
    await this.#releaseLimit.bound(() => this.#offer(keyId, requestId)).catch(this.#notReleased);
  }

  /** Gives back what a request may have, later. */
  giveBack(keyId: string, requestId: string): void {
    this.#requests.delete(requestId);
    if (this.#orphaned.size >= maxOrphaned) return;
    this.#orphaned.set(requestId, keyId);
    if (!this.#isClosed) this.#cancelRetry ??= this.#clock.schedule(retryMs, () => void this.#retry());
  }

  /** Offers the orphaned slots once more, and ends the timers. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelSearch();
    this.#cancelRetry?.();
    await this.#offerOrphaned();
  }

  async #offer(keyId: string, requestId: string): Promise<void> {
    const end = this.#waiting.follow();
    try {
      const ended = await this.#store.release(keyId, requestId);
      this.#orphaned.delete(requestId);
      end(ended);
    } catch (error) {
      this.#notReleased(error);
      this.giveBack(keyId, requestId);
    }
  }

  async #retry(): Promise<void> {
    await this.#offerOrphaned();
    this.#cancelRetry =
      this.#orphaned.size === 0 || this.#isClosed
        ? null
        : this.#clock.schedule(retryMs, () => void this.#retry());
  }

  async #offerOrphaned(): Promise<void> {
    await Promise.all([...this.#orphaned].map(([requestId, keyId]) => this.#offer(keyId, requestId)));
  }

  /** Searches at once, as when a database is back that may have forgotten what it had. */
  searchNow(): void {
    if (this.#isClosed) return;
    this.#cancelSearch();
    if (this.#isSearching) this.#searchesAgain = true;
    else void this.#search();
  }

  /** Called before the store is asked what it has: returns what restores the slots of those that have one by then. */
  #restore(): (held: ReadonlySet<string>) => Promise<void> {
    const running = [...this.#requests].filter(([, { hasSlot }]) => hasSlot);
    return async (held) => {
      const forgotten = running.filter(([requestId]) => !held.has(requestId));
      const ofKeys = [...Map.groupBy(forgotten, ([, { keyId }]) => keyId)];
      for (let at = 0; at < ofKeys.length; at += restoredAtOnce)
        await Promise.all(
          ofKeys.slice(at, at + restoredAtOnce).map(([keyId, requests]) => this.#restoreOf(keyId, requests)),
        );
    };
  }

  async #restoreOf(keyId: string, requests: readonly (readonly [string, Request])[]): Promise<void> {
    // One that has ended meanwhile has given its slot back.
    const present = requests.filter(([requestId]) => this.#requests.has(requestId));
    if (present.length === 0) return;
    for (const [, request] of present) request.wasRestored = true;
    const requestIds = present.map(([requestId]) => requestId);
    await this.#store.restore(keyId, requestIds).catch(this.#notRestored);
  }

  /**
   * Gives back what the store has for requests that are not here, and what it has for processes whose lease has ended:
   * the one that ended it frees them at once, unless it dies before, or a slot was being taken just then. Requests that
   * run or wait, and of which the store has nothing, are found, too.
   */
  async #search(): Promise<void> {
    this.#isSearching = true;
    this.#searchesAgain = false;
    try {
      // First: what stands under an ended lease of this process can't be restored under the new one.
      await this.#store.freeLost();
      const compare = this.#waiting.compare();
      const restore = this.#restore();
      const held = await this.#store.held();
      const heldIds = new Set(held.map(({ requestId }) => requestId));
      compare(heldIds);
      await restore(heldIds);
      for (const { keyId, requestId } of held)
        if (!this.#requests.has(requestId)) await this.#offer(keyId, requestId);
    } catch (error) {
      this.#notReleased(error);
    }
    this.#isSearching = false;
    if (this.#isClosed) return;
    if (!this.#searchesAgain) this.#cancelSearch = this.#clock.schedule(searchMs, () => void this.#search());
    else void this.#search();
  }
}

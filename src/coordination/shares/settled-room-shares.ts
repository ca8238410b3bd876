import type { Clock } from '../../domain/ports/clock.ts';
import type {
  RoomLimit,
  RoomShares,
  RoomShareStore,
  ShareDemand,
  SharedRooms,
} from '../../domain/ports/room-shares.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { StorageError } from '../../domain/storage-refusal.ts';
import { sumFaults } from '../../domain/summed-fault.ts';
import { TimeLimit } from '../../domain/limits/time-limit.ts';
import { ShareClaim } from './share-claim.ts';

/** How often the shares are settled, in milliseconds. */
const settleMs = 1_000;

/** The shortest time from one settling to the next, in milliseconds, while something waits for a share. */
const pressMs = 100;

/** How long the last settling may take, in milliseconds. */
const lastMs = 1_000;

/** What shares are settled with. */
interface SettlingOptions {
  readonly clock: Clock;
  /** Whether this process has its lease, as far as it can know: without it, it has no shares. */
  readonly holdsLease: () => boolean;
  readonly onFault: ReportFault;
}

/**
 * Settles with the other processes how much of the limits of upstreams this one may use. It asks for all of them every
 * second, and sooner while something waits for a share. What it gives back it stops using before it says so: an answer
 * that is lost or late leaves the others less than there is, and never more.
 */
export class SettledRoomShares implements RoomShares {
  readonly #store: RoomShareStore;
  readonly #options: SettlingOptions;
  readonly #clock: Clock;
  readonly #report: (error: unknown) => void;
  readonly #lastLimit: TimeLimit;
  readonly #claims = new Map<string, ShareClaim>();
  #rooms: SharedRooms | null = null;
  /** The owner of the shares that the claims know of. */
  #owner: string | null = null;
  /** The number of the last call. */
  #turn = 0;
  /** When it began, and when the next one is looked at. */
  #begunMs = Number.NEGATIVE_INFINITY;
  #dueMs = Number.POSITIVE_INFINITY;
  #cancel = (): void => {};
  #settling: Promise<void> | null = null;
  #wasHeld = false;
  #isClosed = false;

  constructor(store: RoomShareStore, options: SettlingOptions) {
    const { clock, onFault } = options;
    this.#store = store;
    this.#options = options;
    this.#clock = clock;
    this.#report = sumFaults('shares of the limits of upstreams could not be settled', onFault, clock);
    this.#lastLimit = new TimeLimit(lastMs, clock, () => new StorageError('the database is slow', 'slow'));
  }

  of(upstream: string, limit: RoomLimit): number {
    return this.#holds ? (this.#claims.get(nameOf(upstream, limit))?.usable ?? 0) : 0;
  }

  look(): void {
    this.#runIn(Math.max(0, this.#begunMs + pressMs - this.#clock.monotonicMs()));
  }

  /** Begins to settle the shares of the limits that some rooms have. */
  follow(rooms: SharedRooms): void {
    this.#rooms = rooms;
    this.#runIn(0);
  }

  /** Gives back what is not used; nothing may be started any more. Resolves when nothing is asked of the database. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#lastLimit.bound(() => this.#giveBack()).catch(this.#report);
  }

  get #holds(): boolean {
    return this.#options.holdsLease() && this.#store.owner() === this.#owner;
  }

  get #isPressing(): boolean {
    return [...this.#claims.values()].some((claim) => claim.isPressing);
  }

  #runIn(delayMs: number): void {
    const atMs = this.#clock.monotonicMs() + delayMs;
    if (this.#isClosed || this.#settling !== null || this.#dueMs <= atMs) return;
    this.#cancel();
    this.#dueMs = atMs;
    this.#cancel = this.#clock.schedule(delayMs, () => this.#run());
  }

  #run(): void {
    this.#dueMs = Number.POSITIVE_INFINITY;
    const isHeld = this.#options.holdsLease();
    if (isHeld && this.#store.owner() !== this.#owner) {
      this.#owner = this.#store.owner();
      for (const claim of this.#claims.values()) claim.lose();
    }
    // What it had before its lease was over it may use again, if the lease was not ended meanwhile.
    if (isHeld && !this.#wasHeld) this.#rooms?.serve();
    this.#wasHeld = isHeld;
    this.#note();
    const leftMs = this.#begunMs + settleMs - this.#clock.monotonicMs();
    if (!isHeld || (leftMs > 0 && !this.#isPressing)) {
      this.#runIn(isHeld ? leftMs : settleMs);
      return;
    }
    this.#begunMs = this.#clock.monotonicMs();
    this.#settling = this.#settle(this.#demands()).finally(() => {
      this.#settling = null;
      this.#note();
      const pauseMs = this.#isPressing ? pressMs : settleMs;
      this.#runIn(Math.max(0, this.#begunMs + pauseMs - this.#clock.monotonicMs()));
    });
  }

  /** Notes what the rooms do with their limits, and with those that the config in force has no more. */
  #note(): void {
    const nowMs = this.#clock.monotonicMs();
    const unused = new Map(this.#claims);
    for (const use of this.#rooms?.uses() ?? []) {
      const name = nameOf(use.upstream, use.limit);
      unused.delete(name);
      const claim = this.#claims.get(name) ?? new ShareClaim(use);
      this.#claims.set(name, claim);
      claim.note(use, nowMs);
    }
    for (const claim of unused.values()) claim.note(claim.dropped, nowMs);
  }

  #demands(): readonly ShareDemand[] {
    const found = [...this.#claims].map(([name, claim]) => ({
      name,
      claim,
      demand: claim.demand(this.#begunMs),
    }));
    // Of a limit that is gone the others know by now.
    for (const { name, claim, demand } of found)
      if (demand === null && claim.isDropped) this.#claims.delete(name);
    return found.flatMap(({ demand }) => demand ?? []);
  }

  async #settle(demands: readonly ShareDemand[]): Promise<void> {
    if (demands.length === 0) return;
    try {
      const granted = await this.#store.settle(++this.#turn, demands);
      const nowMs = this.#clock.monotonicMs();
      const grown = granted.filter((share) =>
        this.#claims.get(nameOf(share.upstream, share.limit))?.granted(share, nowMs),
      );
      if (grown.length > 0) this.#rooms?.serve();
    } catch (error) {
      this.#report(error);
    }
  }

  async #giveBack(): Promise<void> {
    await this.#settling;
    this.#note();
    const last = [...this.#claims.values()].map((claim) => claim.leaving);
    if (last.length > 0 && this.#holds) await this.#store.settle(++this.#turn, last);
  }
}

/** The name under which a claim is kept. */
function nameOf(upstream: string, limit: RoomLimit): string {
  return `${limit} ${upstream}`;
}

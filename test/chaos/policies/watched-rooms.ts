import type { MemoryRooms } from '../../../src/coordination/rooms/rooms.ts';
import type { Entry, Place, RoomRequest, RoomTokens, Rooms } from '../../../src/domain/ports/rooms.ts';
import type { Target } from '../../../src/domain/upstreams/sent-request.ts';
import type { FakeClock } from '../../support/fake-clock.ts';

/** A request that asked for a place. */
export interface Asking {
  readonly request: RoomRequest;
  readonly sinceMs: number;
}

/** A place that was given; `leftMs` is `null` as long as it is held. */
export interface GivenPlace {
  readonly upstream: string;
  readonly tokens: RoomTokens;
  readonly enteredMs: number;
  leftMs: number | null;
  /** What it used by what the gateway knows. */
  used: number;
}

/** Passes on to rooms, and notes who asks, who waits, who gets in and who leaves. */
export class WatchedRooms implements Rooms {
  readonly #rooms: MemoryRooms;
  readonly #clock: FakeClock;
  readonly waitingNow = new Set<Asking>();
  readonly places: GivenPlace[] = [];
  readonly faults: string[] = [];
  waits = 0;
  refusals = 0;
  waitedMs = 0;

  constructor(rooms: MemoryRooms, clock: FakeClock) {
    this.#rooms = rooms;
    this.#clock = clock;
  }

  limits(target: Target): boolean {
    return this.#rooms.limits(target);
  }

  enter(request: RoomRequest, signal: AbortSignal): Entry | Promise<Entry> {
    const asking: Asking = {
      request: { ...request, targets: [...request.targets] },
      sinceMs: this.#clock.monotonicMs(),
    };
    const entry = this.#rooms.enter(request, signal);
    if (!(entry instanceof Promise)) return this.#note(asking, entry);
    this.waitingNow.add(asking);
    return entry.then((later) => {
      this.waitingNow.delete(asking);
      if (!signal.aborted || later.kind === 'entered') this.waits++;
      this.waitedMs += this.#clock.monotonicMs() - asking.sinceMs;
      return this.#note(asking, later);
    });
  }

  enterAtOnce(request: Parameters<Rooms['enterAtOnce']>[0]): Place | null {
    const place = this.#rooms.enterAtOnce(request);
    return place === null || !this.limits(place)
      ? place
      : this.#give(place, request.tokens, `a second request of ${request.keyId}`);
  }

  waiting(requestId: string): ReturnType<Rooms['waiting']> {
    return this.#rooms.waiting(requestId);
  }

  pausedMs(target: Target): number {
    return this.#rooms.pausedMs(target);
  }

  views(): ReturnType<Rooms['views']> {
    return this.#rooms.views();
  }

  #note(asking: Asking, entry: Entry): Entry {
    if (entry.kind === 'full' || entry.kind === 'timed_out') this.refusals++;
    if (entry.kind !== 'entered' || !this.limits(entry.place)) return entry;
    const { keyId, requestId, tokens, weight } = asking.request;
    const ways = waysOf(asking.request);
    for (const { request: other } of this.waitingNow) {
      const isSame = other.keyId === keyId && other.weight === weight && waysOf(other) === ways;
      if (isSame && this.#isEarlier(other, asking))
        this.faults.push(`${requestId} passed ${other.requestId} of its key`);
    }
    return { ...entry, place: this.#give(entry.place, tokens, requestId) };
  }

  /** Those in the set came in its order. */
  #isEarlier(other: RoomRequest, { request, sinceMs }: Asking): boolean {
    for (const asking of this.waitingNow)
      if (asking.request === other) return other !== request && asking.sinceMs < sinceMs;
    return false;
  }

  #give(place: Place, tokens: RoomTokens, requestId: string): Place {
    const { upstream } = place;
    const given: GivenPlace = {
      upstream,
      tokens,
      enteredMs: this.#clock.monotonicMs(),
      leftMs: null,
      used: 0,
    };
    this.places.push(given);
    const leave = (used: number): void => {
      if (given.leftMs !== null) this.faults.push(`the place of ${requestId} was given back twice`);
      given.leftMs = this.#clock.monotonicMs();
      given.used = used;
    };
    return {
      ...place,
      answered: (...head) => place.answered(...head),
      leave: (usage) => {
        const { input, output } = usage ?? given.tokens;
        leave(input + output);
        place.leave(usage);
      },
      withdraw: () => {
        leave(0);
        place.withdraw();
      },
    };
  }
}

function waysOf({ targets }: RoomRequest): string {
  return targets
    .map((target) => JSON.stringify(target))
    .toSorted()
    .join();
}

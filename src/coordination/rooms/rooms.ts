import type { Clock } from '../../domain/ports/clock.ts';
import type { LimitUse, SharedRooms } from '../../domain/ports/room-shares.ts';
import type {
  ConfigurableRooms,
  Entry,
  Place,
  RoomRequest,
  RoomSettings,
  RoomView,
  WaitingForRoom,
} from '../../domain/ports/rooms.ts';
import type { Ticket } from '../../domain/rooms/key-queue.ts';
import type { RoomStay } from '../../domain/rooms/room.ts';
import { TimedRoom, refusalBy } from './timed-room.ts';
import type { RoomsOptions } from './timed-room.ts';
import { expectedAtFirst, joinQueues, outlook } from './waiting-entry.ts';
import type { WaitingEntry } from './waiting-entry.ts';

const nothing = (): void => {};

/** What a request asks for, whether or not it may wait. */
type Asked = Parameters<ConfigurableRooms['enterAtOnce']>[0];

/** The rooms of a process's upstreams, in memory. */
export class MemoryRooms implements ConfigurableRooms, SharedRooms {
  readonly #clock: Clock;
  readonly #options: RoomsOptions;
  readonly #rooms = new Map<string, TimedRoom>();
  readonly #waiting = new Map<string, WaitingEntry>();

  /** `settings` has the upstreams with a limit at least. */
  constructor(clock: Clock, settings: ReadonlyMap<string, RoomSettings>, options: RoomsOptions = {}) {
    this.#clock = clock;
    this.#options = options;
    this.configure(settings);
  }

  limits(upstream: string): boolean {
    return this.#rooms.has(upstream);
  }

  enter(request: RoomRequest, signal: AbortSignal): Entry | Promise<Entry> {
    if (signal.aborted) return { kind: 'interrupted' };
    const nowMs = this.#clock.monotonicMs();
    const place = this.#placeAtOnce(request, nowMs);
    if (place !== null) return entered(place, 0, 0);
    const rooms = this.#roomsOf(request);
    const open = rooms.filter((room) => room.mayBeJoined(request, nowMs));
    const longestMs = Math.max(...open.map((room) => room.patienceMs(request, nowMs)));
    // Once it waits, it waits in all queues, full ones, too: else it would wait for one upstream while another one is free.
    if (open.length > 0) return this.#wait(request, rooms, longestMs, signal);
    const refusal = refusalBy(rooms, request, nowMs);
    const { waitedMs } = request;
    const isTimedOut = waitedMs > 0 && rooms.every(({ settings }) => settings.queueWaitMs <= waitedMs);
    return isTimedOut ? { kind: 'timed_out', waitedMs: 0, ...refusal } : { kind: 'full', ...refusal };
  }

  enterAtOnce(request: Asked): Place | null {
    const nowMs = this.#clock.monotonicMs();
    const place = this.#placeAtOnce(request, nowMs);
    if (place !== null) return place;
    // Without a queue, nothing else would show that this process needs a share.
    const missed = this.#roomsOf(request).filter((room) => room.misses(request, nowMs));
    if (missed.length > 0) this.#options.shares?.look();
    return null;
  }

  waiting(requestId: string): WaitingForRoom | null {
    const entry = this.#waiting.get(requestId);
    return entry === undefined ? null : outlook(entry, this.#clock.monotonicMs());
  }

  pausedMs(upstream: string): number {
    return this.#rooms.get(upstream)?.pausedMs(this.#clock.monotonicMs()) ?? 0;
  }

  views(): readonly RoomView[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#rooms.values()].map((room) => room.view(nowMs));
  }

  configure(settings: ReadonlyMap<string, RoomSettings>): void {
    for (const [upstream, wanted] of settings) {
      const known = this.#rooms.get(upstream);
      if (known === undefined)
        this.#rooms.set(upstream, new TimedRoom(upstream, wanted, this.#clock, this.#options));
      else known.configure(wanted);
    }
    for (const room of this.#rooms.values()) {
      if (settings.has(room.upstream)) continue;
      room.stop();
      this.#rooms.delete(room.upstream);
      this.#letAllIn(room);
    }
    this.serve();
  }

  forget(upstream: string, config: number): void {
    this.#rooms.get(upstream)?.forget(config);
    this.serve();
  }

  uses(): readonly LimitUse[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#rooms.values()].flatMap((room) => room.uses(nowMs));
  }

  serve(): void {
    for (const room of this.#rooms.values()) this.#serve([room]);
  }

  /** Ends the timers of queues. Those who wait must have been interrupted. */
  close(): void {
    for (const room of this.#rooms.values()) room.stop();
  }

  /** A place at the first upstream that has one now. */
  #placeAtOnce(request: Asked, nowMs: number): Place | null {
    const { keyId, weight, upstreams, tokens } = request;
    for (const upstream of upstreams) {
      const room = this.#rooms.get(upstream);
      if (room === undefined) return placeWithoutRoom(upstream);
      if (room.queue.size > 0 || room.startsInMs(request, 'share', nowMs) > 0) continue;
      const cost = room.costOf(tokens);
      room.queue.serveAtOnce(keyId, weight, cost);
      return this.#placeIn(room, room.begin(request, cost, nowMs));
    }
    return null;
  }

  #roomsOf({ upstreams }: Asked): readonly TimedRoom[] {
    return upstreams.flatMap((upstream) => this.#rooms.get(upstream) ?? []);
  }

  /** Waits in the queues of some rooms. */
  #wait(
    request: RoomRequest,
    rooms: readonly TimedRoom[],
    longestMs: number,
    signal: AbortSignal,
  ): Promise<Entry> {
    return new Promise((resolve) => {
      const nowMs = this.#clock.monotonicMs();
      const leave = (ended: () => Entry): void => {
        for (const { room, ticket } of entry.queues) room.queue.leave(ticket);
        entry.end(ended());
        this.#serve(entry.queues.map(({ room }) => room));
      };
      const interrupt = (): void => leave(() => ({ kind: 'interrupted' }));
      const cancel = this.#clock.schedule(longestMs, () => leave(() => this.#timedOut(entry)));
      const entry = joinQueues(request, rooms, nowMs, (result) => {
        cancel();
        signal.removeEventListener('abort', interrupt);
        this.#waiting.delete(request.requestId);
        resolve(result.kind === 'entered' ? { ...result, expectedMs: expected } : result);
      });
      const expected = expectedAtFirst(entry, nowMs);
      signal.addEventListener('abort', interrupt);
      this.#waiting.set(request.requestId, entry);
      // The queue may have been empty, and a limit lets the request in later.
      this.#serve(rooms);
      this.#options.shares?.look();
    });
  }

  #timedOut({ queues, request, sinceMs }: WaitingEntry): Entry {
    const nowMs = this.#clock.monotonicMs();
    const rooms = queues.map(({ room }) => room);
    return { kind: 'timed_out', waitedMs: nowMs - sinceMs, ...refusalBy(rooms, request, nowMs) };
  }

  /** Lets in those at the heads of queues for whom there is room; who gets in leaves other queues, which are then served, too. */
  #serve(rooms: readonly TimedRoom[]): void {
    const unserved = [...rooms];
    for (let room = unserved.pop(); room !== undefined; room = unserved.pop()) {
      const nowMs = this.#clock.monotonicMs();
      const head = room.queue.head();
      const inMs =
        head === null ? Number.POSITIVE_INFINITY : room.startsInMs(head.member.request, 'share', nowMs);
      if (head === null || inMs > 0) {
        room.lookAgain(inMs, () => this.#serve([room]));
        continue;
      }
      unserved.push(room, ...this.#letIn(room, head, nowMs));
    }
  }

  /** Lets a request in. Returns the other rooms for which it waited. */
  #letIn(room: TimedRoom, head: Ticket<WaitingEntry>, nowMs: number): TimedRoom[] {
    const { request, sinceMs, queues, end } = head.member;
    room.queue.serve(head);
    const left = queues.filter(({ room: other, ticket }) => other.queue.leave(ticket));
    const place = this.#placeIn(room, room.begin(request, head.cost, nowMs));
    end(entered(place, nowMs - sinceMs, 0));
    return left.map(({ room: other }) => other);
  }

  /** Lets all in who wait for an upstream that has no limits any more. */
  #letAllIn(room: TimedRoom): void {
    const nowMs = this.#clock.monotonicMs();
    for (let head = room.queue.head(); head !== null; head = room.queue.head())
      this.#serve(this.#letIn(room, head, nowMs));
  }

  #placeIn(room: TimedRoom, stay: RoomStay): Place {
    return {
      upstream: room.upstream,
      answered: (status, retryAfterMs, report) => {
        room.answered(stay, { status, retryAfterMs, report }, this.#clock.monotonicMs());
        this.#serve([room]);
      },
      leave: (usage) => {
        room.leave(stay, usage, this.#clock.monotonicMs());
        this.#serve([room]);
        this.#options.shares?.look();
      },
      withdraw: () => {
        room.withdraw(stay, this.#clock.monotonicMs());
        this.#serve([room]);
        this.#options.shares?.look();
      },
    };
  }
}

function entered(place: Place, waitedMs: number, expected: number): Entry {
  return { kind: 'entered', place, waitedMs, expectedMs: expected };
}

/** A place at an upstream without limits. */
function placeWithoutRoom(upstream: string): Place {
  return { upstream, answered: nothing, leave: nothing, withdraw: nothing };
}

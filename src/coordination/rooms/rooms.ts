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
import { noLanes } from '../../domain/rooms/lanes.ts';
import { usesOf } from '../../domain/rooms/room-uses.ts';
import type { RoomStay } from '../../domain/rooms/room.ts';
import type { Turn } from '../../domain/rooms/turn.ts';
import { viewRoom } from '../../domain/rooms/view-room.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';
import { askedRooms, placeWithoutRoom, refusalBy, refusedAtOnce } from './asked-rooms.ts';
import type { AskedRoom } from './asked-rooms.ts';
import { TimedRoom } from './timed-room.ts';
import type { RoomsOptions } from './timed-room.ts';
import { expectedAtFirst, joinQueues, outlook } from './waiting-entry.ts';
import type { WaitingEntry } from './waiting-entry.ts';

/** What a request asks for, whether or not it may wait. */
type Asked = Parameters<ConfigurableRooms['enterAtOnce']>[0];

/** For which model one of the queue is let in, and which lanes it passes. */
type LetIn = Pick<Turn<WaitingEntry>, 'model' | 'lanes'>;

/** The rooms of a process's upstreams, in memory. */
export class MemoryRooms implements ConfigurableRooms, SharedRooms {
  readonly #clock: Clock;
  readonly #options: RoomsOptions;
  readonly #rooms = new Map<string, TimedRoom>();
  readonly #waiting = new Map<string, WaitingEntry>();

  /** `settings` has the upstreams with a limit at least, of their own or of one of their models. */
  constructor(clock: Clock, settings: ReadonlyMap<string, RoomSettings>, options: RoomsOptions = {}) {
    this.#clock = clock;
    this.#options = options;
    this.configure(settings);
  }

  limits({ upstream, model }: Target): boolean {
    return this.#rooms.get(upstream)?.limits(model) ?? false;
  }

  enter(request: RoomRequest, signal: AbortSignal): Entry | Promise<Entry> {
    if (signal.aborted) return { kind: 'interrupted' };
    const nowMs = this.#clock.monotonicMs();
    const place = this.#placeAtOnce(request, nowMs);
    if (place !== null) return entered(place, 0, 0);
    const rooms = askedRooms(request, this.#rooms);
    const open = rooms.filter(({ room, models }) => room.mayBeJoined(models, request, nowMs));
    const longestMs = Math.max(...open.map(({ room, models }) => room.patienceMs(models, request, nowMs)));
    // Once it waits, it waits in all queues, full ones, too: else it would wait for one upstream while another one is free.
    if (open.length > 0) return this.#wait(request, rooms, longestMs, signal);
    return refusedAtOnce(rooms, request, nowMs);
  }

  enterAtOnce(request: Asked): Place | null {
    const nowMs = this.#clock.monotonicMs();
    const place = this.#placeAtOnce(request, nowMs);
    if (place !== null) return place;
    // Without a queue, nothing else would show that this process needs a share.
    const missed = request.targets.filter(
      ({ upstream, model }) => this.#rooms.get(upstream)?.misses(model, request, nowMs) === true,
    );
    if (missed.length > 0) this.#options.shares?.look();
    return null;
  }

  waiting(requestId: string): WaitingForRoom | null {
    const entry = this.#waiting.get(requestId);
    return entry === undefined ? null : outlook(entry, this.#clock.monotonicMs());
  }

  pausedMs({ upstream, model }: Target): number {
    const room = this.#rooms.get(upstream);
    return room?.limits(model) === true ? room.models.pauses.leftMs(model, this.#clock.monotonicMs()) : 0;
  }

  views(): readonly RoomView[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#rooms.values()].map((room) => viewRoom(room, nowMs));
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
    return [...this.#rooms.values()].flatMap((room) => usesOf(room, nowMs));
  }

  serve(): void {
    for (const room of this.#rooms.values()) this.#serve([room]);
  }

  /** Ends the timers of queues. Those who wait must have been interrupted. */
  close(): void {
    for (const room of this.#rooms.values()) room.stop();
  }

  /** A place at the first target that has one now. */
  #placeAtOnce(request: Asked, nowMs: number): Place | null {
    const { keyId, weight, targets, tokens } = request;
    for (const target of targets) {
      const { upstream, model } = target;
      const room = this.#rooms.get(upstream);
      if (room?.limits(model) !== true) return placeWithoutRoom(target);
      const passed = room.passes(model, tokens, nowMs);
      if (passed === null) continue;
      const cost = room.costOf(tokens);
      room.queue.serveAtOnce(keyId, weight, cost, passed);
      return this.#placeIn(room, room.begin(request, model, cost, nowMs));
    }
    return null;
  }

  /** Waits in the queues of some rooms. */
  #wait(
    request: RoomRequest,
    rooms: readonly AskedRoom[],
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
      this.#serve(rooms.map(({ room }) => room));
      this.#options.shares?.look();
    });
  }

  #timedOut({ queues, request, sinceMs }: WaitingEntry): Entry {
    const nowMs = this.#clock.monotonicMs();
    return { kind: 'timed_out', waitedMs: nowMs - sinceMs, ...refusalBy(queues, request, nowMs) };
  }

  /** Lets in those at the heads of queues for whom there is room; who gets in leaves other queues, which are then served, too. */
  #serve(rooms: readonly TimedRoom[]): void {
    const unserved = [...rooms];
    for (let room = unserved.pop(); room !== undefined; room = unserved.pop()) {
      const nowMs = this.#clock.monotonicMs();
      const turn = room.next(nowMs);
      const { ticket, inMs } = turn;
      if (ticket === null || inMs > 0) {
        room.lookAgain(inMs, () => this.#serve([room]));
        continue;
      }
      unserved.push(room, ...this.#letIn(room, ticket, turn, nowMs));
    }
  }

  /** Lets a request in. Returns the other rooms for which it waited. */
  #letIn(room: TimedRoom, head: Ticket<WaitingEntry>, { model, lanes }: LetIn, nowMs: number): TimedRoom[] {
    const { request, sinceMs, queues, end } = head.member;
    room.queue.serve(head, lanes);
    const left = queues.filter(({ room: other, ticket }) => other.queue.leave(ticket));
    const place = this.#placeIn(room, room.begin(request, model, head.cost, nowMs));
    end(entered(place, nowMs - sinceMs, 0));
    return left.map(({ room: other }) => other);
  }

  /** Lets all in who wait for an upstream that has no limits any more. */
  #letAllIn(room: TimedRoom): void {
    const nowMs = this.#clock.monotonicMs();
    for (let head = room.queue.head(); head !== null; head = room.queue.head())
      this.#serve(this.#letIn(room, head, { model: head.lane.models[0] ?? null, lanes: noLanes }, nowMs));
  }

  #placeIn(room: TimedRoom, stay: RoomStay): Place {
    return {
      upstream: room.upstream,
      model: stay.model,
      isOfModel: stay.ofModel !== null,
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

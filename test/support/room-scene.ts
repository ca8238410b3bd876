import { setImmediate } from 'node:timers/promises';
import { MemoryRooms } from '../../src/coordination/rooms/rooms.ts';
import type {
  Entry,
  LimitSettings,
  Place,
  RoomRequest,
  RoomSettings,
  Rooms,
} from '../../src/domain/ports/rooms.ts';
import type { RoomShares } from '../../src/domain/ports/room-shares.ts';
import type { Target } from '../../src/domain/upstreams/sent-request.ts';
import { createFakeClock } from './fake-clock.ts';
import type { FakeClock } from './fake-clock.ts';

/** Settings of limits, of which those are set that are given. */
export function limitSettings(own: Partial<LimitSettings>): LimitSettings {
  return {
    maxInFlight: null,
    requestsPerMinute: null,
    tokensPerMinute: null,
    learnLimits: false,
    queue: 100,
    queueWaitMs: 30_000,
    ...own,
  };
}

/** Settings of an upstream, without limits but those given. */
export function roomSettings({ models = new Map(), ...own }: Partial<RoomSettings>): RoomSettings {
  return { ...limitSettings(own), models };
}

/** Where requests go that are asked for an upstream: to one model there. */
export function at(upstream: string, model = 'usual'): Target {
  return { upstream, model };
}

/** A request that came, and what became of it; `entry` is `null` as long as it waits. */
export interface Came {
  readonly id: string;
  readonly abort: AbortController;
  entry: Entry | null;
}

/** What is not usual of a request; it goes to all upstreams unless they, or its targets, are named. */
type ComeOptions = Partial<RoomRequest> & { readonly upstreams?: readonly string[] };

export interface RoomScene {
  readonly clock: FakeClock;
  readonly rooms: Rooms & Pick<MemoryRooms, 'configure' | 'forget' | 'uses' | 'serve'>;
  /** The ids of those that entered, in their order. */
  readonly entered: string[];
  readonly come: (id: string, own?: ComeOptions) => Came;
  /** Lets the time pass, and promises be settled. */
  readonly pass: (durationMs: number) => Promise<void>;
}

/** The place of a request that entered. */
export function placeOf({ id, entry }: Came): Place {
  if (entry?.kind !== 'entered') throw new Error(`${id} is ${entry?.kind ?? 'waiting'}`);
  return entry.place;
}

/** Rooms by their settings. An id such as `a1` is of the key `a`. */
export function openRooms(
  settings: Readonly<Record<string, Partial<RoomSettings>>>,
  options: { readonly pausedMs?: (target: Target) => number; readonly shares?: RoomShares } = {},
): RoomScene {
  const clock = createFakeClock();
  const rooms = new MemoryRooms(
    clock,
    new Map(Object.entries(settings).map(([name, own]) => [name, roomSettings(own)])),
    options,
  );
  const entered: string[] = [];
  return {
    clock,
    rooms,
    entered,
    come(id, { upstreams = Object.keys(settings), ...own } = {}) {
      const came: Came = { id, abort: new AbortController(), entry: null };
      const note = (entry: Entry): void => {
        came.entry = entry;
        if (entry.kind === 'entered') entered.push(id);
      };
      const entry = rooms.enter(
        {
          requestId: id,
          keyId: id.slice(0, 1),
          weight: 1,
          targets: upstreams.map((upstream) => at(upstream)),
          tokens: { input: 0, output: 0 },
          waitedMs: 0,
          ...own,
        },
        came.abort.signal,
      );
      if (entry instanceof Promise) void entry.then(note);
      else note(entry);
      return came;
    },
    async pass(durationMs) {
      clock.advance(durationMs);
      await setImmediate();
    },
  };
}

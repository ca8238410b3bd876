import type { Entry, Place, RoomRequest } from '../../domain/ports/rooms.ts';
import type { Model } from '../../domain/rooms/lanes.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';
import type { TimedRoom } from './timed-room.ts';

/** A room, and the models there for which a request asks. */
export interface AskedRoom {
  readonly room: TimedRoom;
  readonly models: readonly Model[];
}

/** The rooms of a request's targets. */
export function askedRooms(
  { targets }: Pick<RoomRequest, 'targets'>,
  rooms: ReadonlyMap<string, TimedRoom>,
): readonly AskedRoom[] {
  const asked = Map.groupBy(targets, ({ upstream }) => rooms.get(upstream));
  return [...asked].flatMap(([room, there]) =>
    room === undefined ? [] : [{ room, models: there.map(({ model }) => model) }],
  );
}

/** What a refusal by some rooms says: whose they are, and how long the shortest wait is among them, and how many wait there. */
export function refusalBy(
  asked: readonly AskedRoom[],
  request: RoomRequest,
  nowMs: number,
): Omit<Extract<Entry, { readonly kind: 'full' }>, 'kind' | 'isTooLong'> {
  let shortest = { waiting: 0, expectedMs: Number.POSITIVE_INFINITY };
  for (const { room, models } of asked) {
    const ahead = room.queue.lanes.ahead(models, room.heldAt(nowMs));
    const expectedMs = room.expectedMs(models, ahead, request.tokens, nowMs);
    if (expectedMs < shortest.expectedMs) shortest = { waiting: ahead.all.requests, expectedMs };
  }
  return {
    upstreams: asked.map(({ room: { upstream } }) => upstream),
    models: asked.flatMap(({ room, models }) =>
      models.flatMap((model) =>
        model === null || room.models.of(model) === undefined ? [] : [{ upstream: room.upstream, model }],
      ),
    ),
    ...shortest,
  };
}

/** The refusal of a request that may wait for none of some rooms, or no longer. */
export function refusedAtOnce(asked: readonly AskedRoom[], request: RoomRequest, nowMs: number): Entry {
  const refusal = refusalBy(asked, request, nowMs);
  const { waitedMs } = request;
  const isTimedOut = waitedMs > 0 && asked.every(({ room, models }) => room.queueWaitMs(models) <= waitedMs);
  if (isTimedOut) return { kind: 'timed_out', waitedMs: 0, ...refusal };
  const isTooLong = !asked.every(({ room, models }) => room.isFull(models, nowMs));
  return { kind: 'full', isTooLong, ...refusal };
}

const nothing = (): void => {};

/** A place at a target without limits. */
export function placeWithoutRoom({ upstream, model }: Target): Place {
  return { upstream, model, isOfModel: false, answered: nothing, leave: nothing, withdraw: nothing };
}

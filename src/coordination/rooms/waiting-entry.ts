import type { Ticket } from '../../domain/rooms/key-queue.ts';
import type { Entry, RoomRequest, WaitingForRoom } from '../../domain/ports/rooms.ts';
import type { TimedRoom } from './timed-room.ts';

/** Its place in the queue of one upstream. */
interface PlaceInQueue {
  readonly room: TimedRoom;
  readonly ticket: Ticket<WaitingEntry>;
}

/** A request that waits in the queues of some upstreams. */
export interface WaitingEntry {
  readonly request: RoomRequest;
  readonly sinceMs: number;
  readonly queues: readonly PlaceInQueue[];
  /** Ends the wait. It must be in no queue by then. */
  readonly end: (entry: Entry) => void;
}

/** Joins the queues of some rooms. */
export function joinQueues(
  request: RoomRequest,
  rooms: readonly TimedRoom[],
  nowMs: number,
  end: (entry: Entry) => void,
): WaitingEntry {
  const queues: PlaceInQueue[] = [];
  const entry = { request, sinceMs: nowMs, queues, end };
  for (const room of rooms)
    queues.push({
      room,
      ticket: room.queue.join(request.keyId, request.weight, room.costOf(request.tokens), entry),
    });
  return entry;
}

/** The shortest wait that is expected in any of its queues when it joins them, in milliseconds. */
export function expectedAtFirst({ queues, request }: WaitingEntry, nowMs: number): number {
  const waits = queues.map(({ room, ticket }) =>
    room.expectedMs(room.queue.loadAhead(ticket), request.tokens, nowMs),
  );
  return Math.min(...waits);
}

/** What it has to expect now, for a look at many requests: the first one of a queue counts for all others, too. */
export function outlook({ queues, request }: WaitingEntry, nowMs: number): WaitingForRoom {
  let ahead = Number.POSITIVE_INFINITY;
  let expectedMs = Number.POSITIVE_INFINITY;
  for (const { room, ticket } of queues) {
    const load = room.queue.loadsAhead().get(ticket) ?? room.queue.load;
    ahead = Math.min(ahead, load.requests);
    expectedMs = Math.min(expectedMs, room.expectedMs(load, request.tokens, nowMs));
  }
  return { position: 1 + ahead, expectedMs, upstreams: queues.map(({ room }) => room.upstream) };
}

import type { Ticket } from '../../domain/rooms/key-queue.ts';
import type { Entry, RoomRequest, WaitingForRoom } from '../../domain/ports/rooms.ts';
import type { AskedRoom } from './asked-rooms.ts';

/** Its place in the queue of one upstream. */
interface PlaceInQueue extends AskedRoom {
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
  asked: readonly AskedRoom[],
  nowMs: number,
  end: (entry: Entry) => void,
): WaitingEntry {
  const queues: PlaceInQueue[] = [];
  const entry = { request, sinceMs: nowMs, queues, end };
  const { keyId, weight, tokens } = request;
  for (const { room, models } of asked) {
    const ticket = room.queue.join(keyId, weight, room.costOf(tokens), entry, models);
    queues.push({ room, models, ticket });
  }
  return entry;
}

/** The shortest wait that is expected in any of its queues when it joins them, in milliseconds. */
export function expectedAtFirst({ queues, request }: WaitingEntry, nowMs: number): number {
  const waits = queues.map(({ room, models, ticket }) =>
    room.expectedMs(models, room.queue.loadAhead(ticket, room.heldAt(nowMs).held), request.tokens, nowMs),
  );
  return Math.min(...waits);
}

/** What it has to expect now, for a look at many requests: the first one of a queue counts for all others, too. */
export function outlook({ queues, request }: WaitingEntry, nowMs: number): WaitingForRoom {
  let before = Number.POSITIVE_INFINITY;
  let expectedMs = Number.POSITIVE_INFINITY;
  for (const { room, models, ticket } of queues) {
    const ahead = room.queue.loadsAhead((atMs) => room.heldAt(atMs), nowMs).get(ticket);
    if (ahead === undefined) continue;
    before = Math.min(before, ahead.all.requests);
    expectedMs = Math.min(expectedMs, room.expectedMs(models, ahead, request.tokens, nowMs));
  }
  return { position: 1 + before, expectedMs, upstreams: queues.map(({ room }) => room.upstream) };
}

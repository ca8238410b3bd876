import type { Ticket } from '../../domain/rooms/fair-line.ts';
import type { Entry, RoomRequest, WaitingForRoom } from '../../domain/ports/rooms.ts';
import type { TimedRoom } from './timed-room.ts';

/** Its place in the line of one upstream. */
interface PlaceInLine {
  readonly room: TimedRoom;
  readonly ticket: Ticket<WaitingEntry>;
}

/** A request that waits in the lines of some upstreams. */
export interface WaitingEntry {
  readonly request: RoomRequest;
  readonly sinceMs: number;
  readonly lines: readonly PlaceInLine[];
  /** Ends the wait. It must be in no line by then. */
  readonly end: (entry: Entry) => void;
}

/** Joins the lines of some rooms. */
export function joinLines(
  request: RoomRequest,
  rooms: readonly TimedRoom[],
  nowMs: number,
  end: (entry: Entry) => void,
): WaitingEntry {
  const lines: PlaceInLine[] = [];
  const entry = { request, sinceMs: nowMs, lines, end };
  for (const room of rooms)
    lines.push({
      room,
      ticket: room.line.join(request.keyId, request.weight, room.costOf(request.tokens), entry),
    });
  return entry;
}

/** The shortest wait that is expected in any of its lines when it joins them, in milliseconds. */
export function expectedAtFirst({ lines, request }: WaitingEntry, nowMs: number): number {
  const waits = lines.map(({ room, ticket }) =>
    room.expectedMs(room.line.loadAhead(ticket), request.tokens, nowMs),
  );
  return Math.min(...waits);
}

/** What it has to expect now, for a look at many requests: the first one of a line counts for all others, too. */
export function outlook({ lines, request }: WaitingEntry, nowMs: number): WaitingForRoom {
  let ahead = Number.POSITIVE_INFINITY;
  let expectedMs = Number.POSITIVE_INFINITY;
  for (const { room, ticket } of lines) {
    const load = room.line.loadsAhead().get(ticket) ?? room.line.load;
    ahead = Math.min(ahead, load.requests);
    expectedMs = Math.min(expectedMs, room.expectedMs(load, request.tokens, nowMs));
  }
  return { position: 1 + ahead, expectedMs, upstreams: lines.map(({ room }) => room.upstream) };
}

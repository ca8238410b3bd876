import type { Ticket } from '../../domain/rooms/fair-line.ts';
import type { Entry, RoomRequest } from '../../domain/ports/rooms.ts';
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

/** The shortest wait that is expected in any of its lines from now on, in milliseconds. */
export function expectedMs({ lines, request }: WaitingEntry, nowMs: number): number {
  return Math.min(...lines.map(({ room, ticket }) => room.expectedMs(ticket, request.tokens, nowMs)));
}

/** The best of its places: 1 is the next one. */
export function position({ lines }: WaitingEntry): number {
  return 1 + Math.min(...lines.map(({ room, ticket }) => room.line.ahead(ticket).length));
}

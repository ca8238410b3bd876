import type { Rooms } from '../../domain/ports/rooms.ts';

/** Rooms as the requests of one config use them, which say by its number to which upstream of a name they go. */
export function roomsOfConfig(rooms: Rooms, config: number): Rooms {
  return {
    limits: (target) => rooms.limits(target),
    enter: (request, signal) => rooms.enter({ ...request, config }, signal),
    enterAtOnce: (request) => rooms.enterAtOnce({ ...request, config }),
    waiting: (requestId) => rooms.waiting(requestId),
    pausedMs: (target) => rooms.pausedMs(target),
    views: () => rooms.views(),
  };
}

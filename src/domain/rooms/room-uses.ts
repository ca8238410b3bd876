import type { LimitUse } from '../ports/room-shares.ts';
import type { RoomTokens } from '../ports/rooms.ts';
import { LoadSum } from './load.ts';
import type { Load } from './load.ts';
import type { Room, Waiting } from './room.ts';

/**
 * What this process uses of each configured limit, and what those that wait need beside that, or those that were missed.
 * Those that their own models hold, whatever their share is, need nothing of what all models have.
 */
export function usesOf<Member extends Waiting>(room: Room<Member>, nowMs: number): readonly LimitUse[] {
  const { ofAll, models, queue } = room;
  const missed = room.missed.take();
  const ofModels = models.uses((model) => {
    const own = missed.get(model);
    return needsOf(queue.lanes.waitingFor(model), own === undefined ? [] : [own]);
  }, nowMs);
  return [...ofAll.uses(needsOf(room.heldAt(nowMs, 'whole').open, missed.values()), nowMs), ...ofModels];
}

function needsOf(load: Load, missed: Iterable<RoomTokens>): Load {
  const sum = new LoadSum(load);
  for (const tokens of missed) sum.add(tokens);
  return sum;
}

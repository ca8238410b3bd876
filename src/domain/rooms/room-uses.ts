import type { LimitUse } from '../ports/room-shares.ts';
import { LoadSum } from './load.ts';
import type { Load } from './load.ts';
import type { Room, Waiting } from './room.ts';

/**
 * What this process uses of each configured limit, and what those that wait need beside that, or the one that was missed.
 * Those that their own models hold, whatever their share is, need nothing of what all models have.
 */
export function usesOf<Member extends Waiting>(room: Room<Member>, nowMs: number): readonly LimitUse[] {
  const { missed, ofAll, models, queue } = room;
  room.missed = null;
  const needs = (load: Load, isMissing: boolean): Load => {
    const sum = new LoadSum(load);
    if (missed !== null && isMissing) sum.add(missed.tokens);
    return sum;
  };
  const ofModels = models.uses(
    (model) => needs(queue.lanes.waitingFor(model), missed?.model === model),
    nowMs,
  );
  return [...ofAll.uses(needs(room.heldAt(nowMs, 'whole').open, true), nowMs), ...ofModels];
}

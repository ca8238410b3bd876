import type { LimitUse } from '../ports/quotas.ts';
import type { RequestTokens } from '../ports/upstream-limiters.ts';
import { LoadSum } from './load.ts';
import type { Load } from './load.ts';
import type { UpstreamLimiter, Waiting } from './upstream-limiter.ts';

/**
 * What this process uses of each configured limit, and what those that wait need beside that, or those that were missed.
 * Those that their own models hold, whatever their quota is, need nothing of what all models have.
 */
export function usesOf<Member extends Waiting>(
  limiter: UpstreamLimiter<Member>,
  nowMs: number,
): readonly LimitUse[] {
  const { ofAll, models, queue } = limiter;
  const missed = limiter.missed.take();
  const ofModels = models.uses((model) => {
    const own = missed.get(model);
    return needsOf(queue.lanes.waitingFor(model), own === undefined ? [] : [own]);
  }, nowMs);
  return [...ofAll.uses(needsOf(limiter.heldAt(nowMs, 'whole').open, missed.values()), nowMs), ...ofModels];
}

function needsOf(load: Load, missed: Iterable<RequestTokens>): Load {
  const sum = new LoadSum(load);
  for (const tokens of missed) sum.add(tokens);
  return sum;
}

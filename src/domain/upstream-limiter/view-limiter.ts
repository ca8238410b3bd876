import type { LimitUse } from '../ports/quotas.ts';
import type { LimiterView, RequestTokens } from '../ports/upstream-limiters.ts';
import type { Model } from './lanes.ts';
import { noLoad, noTokens, LoadSum } from './load.ts';
import type { Load } from './load.ts';
import type { UpstreamLimiter, Waiting } from './upstream-limiter.ts';

/** How a limiter is used at a moment of the monotonic clock, in milliseconds. */
export function viewLimiter<Member extends Waiting>(
  limiter: UpstreamLimiter<Member>,
  nowMs: number,
): LimiterView {
  const { upstream, ofAll, models } = limiter;
  const { lanes, size: waiting } = limiter.queue;
  const { pauses } = models;
  const held = limiter.heldAt(nowMs);
  const expectedMs = (wanted: readonly Model[]): number =>
    limiter.expectedMs(wanted, lanes.ahead(wanted, held), noTokens, nowMs);
  // The next ones may be for the models for which others wait: if none does, none is known to be held.
  const waits = lanes.all().map((lane) => expectedMs(lane.models));
  const pausedMs = pauses.ofAllMs(nowMs);
  const ownMs = Math.max(pausedMs, ofAll.waitMs(noLoad, noTokens, nowMs));
  return {
    upstream,
    ...ofAll.view(nowMs),
    pausedMs,
    waiting,
    expectedMs: waits.length === 0 ? Math.ceil(ownMs) : Math.min(...waits),
    models: [...models.all()].map(([model, limits]) => {
      const own = { model, pausedMs: pauses.leftMs(model, nowMs), expectedMs: expectedMs([model]) };
      return Object.assign(own, limits.view(nowMs), { waiting: lanes.waitingFor(model).requests });
    }),
    pauses: pauses.ofModels(nowMs).map(([model, leftMs]) => ({ model, pausedMs: leftMs })),
  };
}

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

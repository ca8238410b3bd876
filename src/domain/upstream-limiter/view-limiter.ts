import type { LimiterView } from '../ports/upstream-limiters.ts';
import { noLoad, noTokens } from './load.ts';
import type { Model } from './lanes.ts';
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

import type { AcquireResult, Permit, PermitRequest } from '../../domain/ports/upstream-limiters.ts';
import type { Model } from '../../domain/upstream-limiter/lanes.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';
import type { TimedLimiter } from './timed-limiter.ts';

/** A limiter, and the models there that a request may use. */
export interface RequestedLimiter {
  readonly limiter: TimedLimiter;
  readonly models: readonly Model[];
}

/** The limiters of a request's targets. */
export function requestedLimiters(
  { targets }: Pick<PermitRequest, 'targets'>,
  limiters: ReadonlyMap<string, TimedLimiter>,
): readonly RequestedLimiter[] {
  const requested = Map.groupBy(targets, ({ upstream }) => limiters.get(upstream));
  return [...requested].flatMap(([limiter, there]) =>
    limiter === undefined ? [] : [{ limiter, models: there.map(({ model }) => model) }],
  );
}

/**
 * What a refusal by some limiters says: whose they are, and how long the shortest wait is among them, and how many wait there.
 */
export function refusalBy(
  requested: readonly RequestedLimiter[],
  request: PermitRequest,
  nowMs: number,
): Omit<Extract<AcquireResult, { readonly kind: 'full' }>, 'kind' | 'isTooLong'> {
  let shortest = { waiting: 0, expectedMs: Number.POSITIVE_INFINITY };
  for (const { limiter, models } of requested) {
    const ahead = limiter.queue.lanes.ahead(models, limiter.heldAt(nowMs));
    const expectedMs = limiter.expectedMs(models, ahead, request.tokens, nowMs);
    if (expectedMs < shortest.expectedMs) shortest = { waiting: ahead.all.requests, expectedMs };
  }
  return {
    upstreams: requested.map(({ limiter: { upstream } }) => upstream),
    models: requested.flatMap(({ limiter, models }) =>
      models.flatMap((model) =>
        model === null || limiter.models.of(model) === undefined
          ? []
          : [{ upstream: limiter.upstream, model }],
      ),
    ),
    ...shortest,
  };
}

/** The refusal of a request that may wait for none of some limiters, or no longer. */
export function refusedAtOnce(
  requested: readonly RequestedLimiter[],
  request: PermitRequest,
  nowMs: number,
): AcquireResult {
  const refusal = refusalBy(requested, request, nowMs);
  const { waitedMs } = request;
  const isTimedOut =
    waitedMs > 0 && requested.every(({ limiter, models }) => limiter.queueWaitMs(models) <= waitedMs);
  if (isTimedOut) return { kind: 'timed_out', waitedMs: 0, ...refusal };
  const isTooLong = !requested.every(({ limiter, models }) => limiter.isFull(models, nowMs));
  return { kind: 'full', isTooLong, ...refusal };
}

const nothing = (): void => {};

/** A permit at a target without limits. */
export function permitWithoutLimits({ upstream, model }: Target): Permit {
  return { upstream, model, isOfModel: false, answered: nothing, release: nothing, releaseUnused: nothing };
}

/** The result of a request that has a permit after a wait; `expected` is what was expected of it. Times are in milliseconds. */
export function acquired(permit: Permit, waitedMs: number, expected: number): AcquireResult {
  return { kind: 'acquired', permit, waitedMs, expectedMs: expected };
}

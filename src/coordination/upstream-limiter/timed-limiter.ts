import type { Clock } from '../../domain/ports/clock.ts';
import type { LimitQuotas } from '../../domain/ports/quotas.ts';
import type {
  PermitRequest,
  LimiterSettings,
  AcquireResult,
  Permit,
  PermitWait,
} from '../../domain/ports/upstream-limiters.ts';
import type { Extent } from '../../domain/upstream-limiter/configured-limits.ts';
import type { Ticket } from '../../domain/upstream-limiter/key-queue.ts';
import type { Model } from '../../domain/upstream-limiter/lanes.ts';
import { UpstreamLimiter } from '../../domain/upstream-limiter/upstream-limiter.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';

/** The least time until a queue is refreshed, in milliseconds: timers may be early by less than one. */
const leastDelayMs = 1;

/**
 * How long a request may wait at least, in milliseconds, if it could start but for the quota that this process has of a
 * limit: the first one after an idle time comes before its quota does.
 */
const quotaWaitMs = 1_500;

/** What limiters depend on beside the clock; each may be left out. */
export interface LimitersOptions {
  /** How long a target is not to be used for a reason that its limiter does not know, in milliseconds. */
  readonly pausedMs?: (target: Target) => number;
  /** The quotas of the limits that this process has; without it, the limits are its own. */
  readonly quotas?: LimitQuotas | null;
}

const nothing = (): void => {};

/** The limiter of an upstream, and the timer that refreshes its queue when a limit may let the next one in. */
export class TimedLimiter extends UpstreamLimiter<QueuedRequest> {
  readonly #clock: Clock;
  readonly #options: LimitersOptions;
  #cancel = nothing;

  constructor(upstream: string, settings: LimiterSettings, clock: Clock, options: LimitersOptions) {
    const { quotas = null, pausedMs = () => 0 } = options;
    super(upstream, settings, {
      quotaOf: (name, limit) => quotas?.of(name, limit) ?? Number.POSITIVE_INFINITY,
      pausedMs: (model) => pausedMs({ upstream, model }),
    });
    this.#clock = clock;
    this.#options = options;
  }

  /** Whether a request may wait for any of some models: not if the queue is full, or a limit or a pause surely lasts longer. */
  mayBeJoined(models: readonly Model[], request: PermitRequest, nowMs: number): boolean {
    // First of all what costs nothing: a full queue refuses many.
    if (this.isFull(models, nowMs)) return false;
    const patienceMs = this.patienceMs(models, request, nowMs);
    const startsInMs = this.#firstInMs(models, request, 'certain', nowMs);
    const isInTime = startsInMs === Number.POSITIVE_INFINITY || startsInMs < patienceMs;
    return patienceMs > 0 && isInTime;
  }

  /** How long a request may wait for any of some models from now on, in milliseconds; 0 or less if it may not. */
  patienceMs(models: readonly Model[], request: PermitRequest, nowMs: number): number {
    const leftMs = this.queueWaitMs(models) - request.waitedMs;
    const { quotas = null } = this.#options;
    const isQuotaShort = quotas !== null && this.#firstInMs(models, request, 'whole', nowMs) === 0;
    return isQuotaShort ? Math.max(leftMs, quotaWaitMs) : leftMs;
  }

  /**
   * Whether a request that joins no queue could start but for the quota that this process has. Then it counts among those that
   * wait until the quotas are renewed once: an upstream that only such requests use would never get a quota.
   */
  misses(model: Model, { tokens }: Pick<PermitRequest, 'tokens'>, nowMs: number): boolean {
    const { quotas = null } = this.#options;
    // Those that wait for the model show already that a quota is needed.
    if (quotas === null || this.queue.lanes.waitingFor(model).requests > 0) return false;
    if (this.startsInMs(model, tokens, 'whole', nowMs) > 0) return false;
    this.missed.add(model, tokens);
    return true;
  }

  /** Has the queue refreshed once after a time; not if that is `Infinity`, as another request has to end before. */
  scheduleRefresh(delayMs: number, refresh: () => void): void {
    this.#cancel();
    this.#cancel =
      delayMs === Number.POSITIVE_INFINITY
        ? nothing
        : this.#clock.schedule(Math.max(leastDelayMs, delayMs), refresh);
  }

  /** Ends the timer. */
  stop(): void {
    this.#cancel();
  }

  #firstInMs(
    models: readonly Model[],
    { tokens }: Pick<PermitRequest, 'tokens'>,
    extent: Extent,
    nowMs: number,
  ): number {
    return Math.min(...models.map((model) => this.startsInMs(model, tokens, extent, nowMs)));
  }
}

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
function refusalBy(
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

/** A permit at a target without limits. */
export function permitWithoutLimits({ upstream, model }: Target): Permit {
  return { upstream, model, isOfModel: false, answered: nothing, release: nothing, releaseUnused: nothing };
}

/** The result of a request that has a permit after a wait; `expected` is what was expected of it. Times are in milliseconds. */
export function acquired(permit: Permit, waitedMs: number, expected: number): AcquireResult {
  return { kind: 'acquired', permit, waitedMs, expectedMs: expected };
}

/** A queue that it has joined. */
interface JoinedQueue extends RequestedLimiter {
  readonly ticket: Ticket<QueuedRequest>;
}

/** A request that waits in the queues of some upstreams. */
export interface QueuedRequest {
  readonly request: PermitRequest;
  readonly sinceMs: number;
  readonly queues: readonly JoinedQueue[];
  /** Ends the wait. It must be in no queue by then. */
  readonly end: (result: AcquireResult) => void;
}

/** Joins the queues of some limiters. */
export function joinQueues(
  request: PermitRequest,
  requested: readonly RequestedLimiter[],
  nowMs: number,
  end: (result: AcquireResult) => void,
): QueuedRequest {
  const queues: JoinedQueue[] = [];
  const queued = { request, sinceMs: nowMs, queues, end };
  const { keyId, weight, tokens } = request;
  for (const { limiter, models } of requested) {
    const ticket = limiter.queue.join(keyId, weight, limiter.costOf(tokens), queued, models);
    queues.push({ limiter, models, ticket });
  }
  return queued;
}

/** The shortest wait that is expected in any of its queues when it joins them, in milliseconds. */
export function expectedAtFirst({ queues, request }: QueuedRequest, nowMs: number): number {
  const waits = queues.map(({ limiter, models, ticket }) =>
    limiter.expectedMs(
      models,
      limiter.queue.loadAhead(ticket, limiter.heldAt(nowMs).held),
      request.tokens,
      nowMs,
    ),
  );
  return Math.min(...waits);
}

/** What it has to expect now, where many requests are shown: the first one of a queue counts for all others, too. */
export function outlook({ queues, request }: QueuedRequest, nowMs: number): PermitWait {
  let before = Number.POSITIVE_INFINITY;
  let expectedMs = Number.POSITIVE_INFINITY;
  for (const { limiter, models, ticket } of queues) {
    const ahead = limiter.queue.loadsAhead((atMs) => limiter.heldAt(atMs), nowMs).get(ticket);
    if (ahead === undefined) continue;
    before = Math.min(before, ahead.all.requests);
    expectedMs = Math.min(expectedMs, limiter.expectedMs(models, ahead, request.tokens, nowMs));
  }
  return { position: 1 + before, expectedMs, upstreams: queues.map(({ limiter }) => limiter.upstream) };
}

/** The refusal of a request that waited as long as it may. */
export function timedOut({ queues, request, sinceMs }: QueuedRequest, nowMs: number): AcquireResult {
  return { kind: 'timed_out', waitedMs: nowMs - sinceMs, ...refusalBy(queues, request, nowMs) };
}

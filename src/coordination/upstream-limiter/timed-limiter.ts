import type { Clock } from '../../domain/ports/clock.ts';
import type { LimitQuotas } from '../../domain/ports/quotas.ts';
import type { PermitRequest, LimiterSettings } from '../../domain/ports/upstream-limiters.ts';
import type { Extent } from '../../domain/upstream-limiter/configured-limits.ts';
import type { Model } from '../../domain/upstream-limiter/lanes.ts';
import { UpstreamLimiter } from '../../domain/upstream-limiter/upstream-limiter.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';
import type { QueuedRequest } from './queued-request.ts';

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

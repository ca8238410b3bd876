import type { Clock } from '../../domain/ports/clock.ts';
import type { LimitUse, QuotaLimiters } from '../../domain/ports/quotas.ts';
import type {
  ConfigurableLimiters,
  AcquireResult,
  Permit,
  PermitRequest,
  LimiterSettings,
  LimiterView,
  PermitWait,
  UpstreamLimiters,
} from '../../domain/ports/upstream-limiters.ts';
import type { Ticket } from '../../domain/upstream-limiter/key-queue.ts';
import { noLanes } from '../../domain/upstream-limiter/lanes.ts';
import type { Turn } from '../../domain/upstream-limiter/turn.ts';
import type { LimitedCall } from '../../domain/upstream-limiter/upstream-limiter.ts';
import { usesOf, viewLimiter } from '../../domain/upstream-limiter/view-limiter.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';
import {
  acquired,
  requestedLimiters,
  permitWithoutLimits,
  refusedAtOnce,
  TimedLimiter,
  expectedAtFirst,
  joinQueues,
  outlook,
  timedOut,
} from './timed-limiter.ts';
import type { RequestedLimiter, LimitersOptions, QueuedRequest } from './timed-limiter.ts';

/** What a request asks for, whether or not it may wait. */
type AnyRequest = Parameters<ConfigurableLimiters['tryAcquire']>[0];

/** For which model a request of the queue gets its permit, and which lanes it passes. */
type Grant = Pick<Turn<QueuedRequest>, 'model' | 'lanes'>;

/** The limiters of a process's upstreams, in memory. */
export class MemoryUpstreamLimiters implements ConfigurableLimiters, QuotaLimiters {
  readonly #clock: Clock;
  readonly #options: LimitersOptions;
  readonly #limiters = new Map<string, TimedLimiter>();
  readonly #waiting = new Map<string, QueuedRequest>();

  /** `settings` has the upstreams with a limit at least, of their own or of one of their models. */
  constructor(clock: Clock, settings: ReadonlyMap<string, LimiterSettings>, options: LimitersOptions = {}) {
    this.#clock = clock;
    this.#options = options;
    this.configure(settings);
  }

  limits({ upstream, model }: Target): boolean {
    return this.#limiters.get(upstream)?.limits(model) ?? false;
  }

  acquire(request: PermitRequest, signal: AbortSignal): AcquireResult | Promise<AcquireResult> {
    if (signal.aborted) return { kind: 'interrupted' };
    const nowMs = this.#clock.monotonicMs();
    const permit = this.#tryAcquire(request, nowMs);
    if (permit !== null) return acquired(permit, 0, 0);
    const limiters = requestedLimiters(request, this.#limiters);
    const open = limiters.filter(({ limiter, models }) => limiter.mayBeJoined(models, request, nowMs));
    const patiences = open.map(({ limiter, models }) => limiter.patienceMs(models, request, nowMs));
    // Once it waits, it waits in all queues, full ones, too: else it would wait for one upstream while another one is free.
    if (open.length > 0) return this.#wait(request, limiters, Math.max(...patiences), signal);
    return refusedAtOnce(limiters, request, nowMs);
  }

  tryAcquire(request: AnyRequest): Permit | null {
    const nowMs = this.#clock.monotonicMs();
    const permit = this.#tryAcquire(request, nowMs);
    if (permit !== null) return permit;
    // Without a queue, nothing else would show that this process needs a quota.
    const missed = request.targets.filter(
      ({ upstream, model }) => this.#limiters.get(upstream)?.misses(model, request, nowMs) === true,
    );
    if (missed.length > 0) this.#options.quotas?.refresh();
    return null;
  }

  waiting(requestId: string): PermitWait | null {
    const queued = this.#waiting.get(requestId);
    return queued === undefined ? null : outlook(queued, this.#clock.monotonicMs());
  }

  pausedMs({ upstream, model }: Target): number {
    const limiter = this.#limiters.get(upstream);
    return limiter?.limits(model) === true
      ? limiter.models.pauses.leftMs(model, this.#clock.monotonicMs())
      : 0;
  }

  views(): readonly LimiterView[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#limiters.values()].map((limiter) => viewLimiter(limiter, nowMs));
  }

  configure(settings: ReadonlyMap<string, LimiterSettings>): void {
    for (const [upstream, wanted] of settings) {
      const known = this.#limiters.get(upstream);
      if (known === undefined)
        this.#limiters.set(upstream, new TimedLimiter(upstream, wanted, this.#clock, this.#options));
      else known.configure(wanted);
    }
    for (const limiter of this.#limiters.values()) {
      if (settings.has(limiter.upstream)) continue;
      limiter.stop();
      this.#limiters.delete(limiter.upstream);
      this.#grantAll(limiter);
    }
    this.serve();
  }

  forget(upstream: string, config: number): void {
    this.#limiters.get(upstream)?.forget(config);
    this.serve();
  }

  uses(): readonly LimitUse[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#limiters.values()].flatMap((limiter) => usesOf(limiter, nowMs));
  }

  serve(): void {
    for (const limiter of this.#limiters.values()) this.#serve([limiter]);
  }

  /** Ends the timers of queues. Those who wait must have been interrupted. */
  close(): void {
    for (const limiter of this.#limiters.values()) limiter.stop();
  }

  /** A permit at the first target that has one now. */
  #tryAcquire(request: AnyRequest, nowMs: number): Permit | null {
    const { keyId, weight, targets, tokens } = request;
    for (const target of targets) {
      const { upstream, model } = target;
      const limiter = this.#limiters.get(upstream);
      if (limiter?.limits(model) !== true) return permitWithoutLimits(target);
      const passed = limiter.passes(model, tokens, nowMs);
      if (passed === null) continue;
      const cost = limiter.costOf(tokens);
      limiter.queue.serveAtOnce(keyId, weight, cost, passed);
      return this.#permitOf(limiter, limiter.begin(request, model, cost, nowMs));
    }
    return null;
  }

  /** Waits in the queues of some limiters. */
  #wait(
    request: PermitRequest,
    limiters: readonly RequestedLimiter[],
    longestMs: number,
    signal: AbortSignal,
  ): Promise<AcquireResult> {
    return new Promise((resolve) => {
      const nowMs = this.#clock.monotonicMs();
      const leave = (ended: () => AcquireResult): void => {
        for (const { limiter, ticket } of queued.queues) limiter.queue.leave(ticket);
        queued.end(ended());
        this.#serve(queued.queues.map(({ limiter }) => limiter));
      };
      const interrupt = (): void => leave(() => ({ kind: 'interrupted' }));
      const cancel = this.#clock.schedule(longestMs, () =>
        leave(() => timedOut(queued, this.#clock.monotonicMs())),
      );
      const queued = joinQueues(request, limiters, nowMs, (result) => {
        cancel();
        signal.removeEventListener('abort', interrupt);
        this.#waiting.delete(request.requestId);
        resolve(result.kind === 'acquired' ? { ...result, expectedMs: expected } : result);
      });
      const expected = expectedAtFirst(queued, nowMs);
      signal.addEventListener('abort', interrupt);
      this.#waiting.set(request.requestId, queued);
      // The queue may have been empty, and a limit grants the request a permit later.
      this.#serve(limiters.map(({ limiter }) => limiter));
      this.#options.quotas?.refresh();
    });
  }

  /** Gives permits to the heads of queues; a request that gets one leaves its other queues, which are then served, too. */
  #serve(limiters: readonly TimedLimiter[]): void {
    const unserved = [...limiters];
    for (let limiter = unserved.pop(); limiter !== undefined; limiter = unserved.pop()) {
      const nowMs = this.#clock.monotonicMs();
      const turn = limiter.next(nowMs);
      const { ticket, inMs } = turn;
      if (ticket === null || inMs > 0) {
        limiter.scheduleRefresh(inMs, () => this.#serve([limiter]));
        continue;
      }
      unserved.push(limiter, ...this.#grant(limiter, ticket, turn, nowMs));
    }
  }

  /** Gives a request of a queue its permit. Returns the other limiters for which it waited. */
  #grant(limiter: TimedLimiter, head: Ticket<QueuedRequest>, to: Grant, nowMs: number): TimedLimiter[] {
    const { request, sinceMs, queues, end } = head.member;
    limiter.queue.serve(head, to.lanes);
    const left = queues.filter(({ limiter: other, ticket }) => other.queue.leave(ticket));
    const permit = this.#permitOf(limiter, limiter.begin(request, to.model, head.cost, nowMs));
    end(acquired(permit, nowMs - sinceMs, 0));
    return left.map(({ limiter: other }) => other);
  }

  /** Gives permits to all that wait for an upstream which has no limits any more. */
  #grantAll(limiter: TimedLimiter): void {
    const nowMs = this.#clock.monotonicMs();
    for (let head = limiter.queue.head(); head !== null; head = limiter.queue.head())
      this.#serve(this.#grant(limiter, head, { model: head.lane.models[0] ?? null, lanes: noLanes }, nowMs));
  }

  #permitOf(limiter: TimedLimiter, call: LimitedCall): Permit {
    return {
      upstream: limiter.upstream,
      model: call.model,
      isOfModel: call.ofModel !== null,
      answered: (status, retryAfterMs, report) => {
        limiter.answered(call, { status, retryAfterMs, report }, this.#clock.monotonicMs());
        this.#serve([limiter]);
      },
      release: (usage) => {
        limiter.release(call, usage, this.#clock.monotonicMs());
        this.#serve([limiter]);
        this.#options.quotas?.refresh();
      },
      releaseUnused: () => {
        limiter.releaseUnused(call, this.#clock.monotonicMs());
        this.#serve([limiter]);
        this.#options.quotas?.refresh();
      },
    };
  }
}

/** Limiters as the requests of one config use them, which say by its number to which upstream of a name they go. */
export function limitersOfConfig(limiters: UpstreamLimiters, config: number): UpstreamLimiters {
  return {
    limits: (target) => limiters.limits(target),
    acquire: (request, signal) => limiters.acquire({ ...request, config }, signal),
    tryAcquire: (request) => limiters.tryAcquire({ ...request, config }),
    waiting: (requestId) => limiters.waiting(requestId),
    pausedMs: (target) => limiters.pausedMs(target),
    views: () => limiters.views(),
  };
}

import type { LimiterSettings } from '../../../src/domain/ports/upstream-limiters.ts';
import { arrivalJitterMs, minuteMs } from '../../../src/domain/upstream-limiter/minute-window.ts';
import type { Target } from '../../../src/domain/upstreams/sent-request.ts';
import type { UpstreamHealth } from '../../../src/domain/upstreams/upstream-health.ts';
import type { FakeClock } from '../../support/fake-clock.ts';
import type { MoodyUpstreams } from './upstreams.ts';
import type { Asking, WatchedLimiters } from './watched-limiters.ts';

/**
 * How long a request may wait for an upstream that is free, in milliseconds: queues are looked at again by timers, which may be
 * late by one millisecond. A start or a token is taken for free only once it has not counted for a minute and the jitter of
 * arrivals, which is the gateway's own margin.
 */
const toleranceMs = 2;

/** The same for an upstream that failed or paused when the request began to wait: it is looked at every 500 ms. */
const returnedToleranceMs = 500 + toleranceMs;

interface Watched {
  readonly settings: ReadonlyMap<string, LimiterSettings>;
  readonly limiters: WatchedLimiters;
  readonly upstreams: MoodyUpstreams;
  readonly clock: FakeClock;
  readonly health: UpstreamHealth;
  /** The routes of a request that has not been sent yet. */
  readonly waysOf: (requestId: string) => readonly Target[];
}

/** Finds requests that wait although one of their upstreams is free, by the calls that it has. */
export class WaitWatch {
  readonly faults: string[] = [];
  /** Since when a request waits beside an upstream that came back, by their names. */
  readonly #besideSinceMs = new Map<string, number>();
  readonly #watched: Watched;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  /** Looks at all that wait, when nothing is about to happen for a time. */
  check(stillMs: number): void {
    const { settings, limiters, clock } = this.#watched;
    const nowMs = clock.monotonicMs();
    const queues = new Set([...limiters.waitingNow].flatMap(upstreamsOf));
    for (const upstream of queues) {
      const limits = settings.get(upstream);
      const waiting = [...limiters.waitingNow].filter((asking) => this.#mayStart(asking, upstream, nowMs));
      if (waiting.length === 0 || limits === undefined) continue;
      if (stillMs > toleranceMs && this.#isFree(upstream, limits, waiting, nowMs))
        this.faults.push(`${waiting[0]?.request.requestId} waits at ${nowMs} although ${upstream} is free`);
    }
    this.#checkOthers(queues, nowMs, stillMs);
  }

  /** Looks at upstreams for which a request does not wait, because they were not available when it joined. */
  #checkOthers(queues: ReadonlySet<string>, nowMs: number, stillMs: number): void {
    const { settings, limiters, health, waysOf } = this.#watched;
    const seen = new Set<string>();
    for (const asking of limiters.waitingNow) {
      const { requestId, keyId } = asking.request;
      for (const route of waysOf(requestId)) {
        const { upstream: way } = route;
        const limits = settings.get(way) ?? null;
        if (queues.has(way)) continue;
        if (health.availability(route, keyId) !== 'available') continue;
        if (nowMs < this.#watched.upstreams.pausedUntilMs(route)) continue;
        if (limits !== null && !this.#isFree(way, limits, [asking], nowMs)) continue;
        const name = `${requestId} ${way}`;
        seen.add(name);
        const sinceMs = Math.max(this.#takenMs(way), this.#besideSinceMs.get(name) ?? nowMs);
        this.#besideSinceMs.set(name, sinceMs);
        if (nowMs + stillMs - sinceMs > returnedToleranceMs)
          this.faults.push(`${requestId} waits at ${nowMs} although ${way} is free again since ${sinceMs}`);
      }
    }
    for (const name of this.#besideSinceMs.keys()) if (!seen.has(name)) this.#besideSinceMs.delete(name);
  }

  /** When another request last had a permit there, which was before it, though it may have been released at once. */
  #takenMs(way: string): number {
    const { limiters, upstreams } = this.#watched;
    const permits = limiters.permits.filter(({ upstream }) => upstream === way);
    return Math.max(
      ...[...upstreams.openAt(way)].map(({ sentMs }) => sentMs),
      ...permits.map(({ acquiredMs, releasedMs }) => releasedMs ?? acquiredMs),
    );
  }

  /** Whether a request waits for an upstream under a model that does not pause there. */
  #mayStart({ request }: Asking, upstream: string, nowMs: number): boolean {
    const { upstreams, health } = this.#watched;
    return request.targets.some(
      (target) =>
        target.upstream === upstream &&
        nowMs >= upstreams.pausedUntilMs(target) &&
        health.coolingMs(target) === 0,
    );
  }

  /** Whether the largest of those that wait could start: then any of them could that is the next one. */
  #isFree(upstream: string, limits: LimiterSettings, waiting: readonly Asking[], nowMs: number): boolean {
    const { upstreams, limiters } = this.#watched;
    const { maxInFlight, requestsPerMinute, tokensPerMinute, learnLimits } = limits;
    // What an upstream that reports limits would take is not known here.
    if (learnLimits) return false;
    if (maxInFlight !== null && upstreams.openAt(upstream).size >= maxInFlight) return false;
    const counts = (atMs: number): boolean => atMs + minuteMs + arrivalJitterMs > nowMs;
    const starts = upstreams.calls.filter((call) => call.upstream === upstream && counts(call.sentMs)).length;
    if (requestsPerMinute !== null && starts >= requestsPerMinute) return false;
    if (tokensPerMinute === null) return true;
    let tokens = 0;
    for (const permit of limiters.permits) {
      if (permit.upstream !== upstream) continue;
      if (permit.releasedMs === null) tokens += permit.tokens.input + permit.tokens.output;
      else if (counts(permit.releasedMs)) tokens += permit.used;
    }
    const largest = Math.max(...waiting.map(({ request }) => request.tokens.input + request.tokens.output));
    return tokens + Math.min(largest, tokensPerMinute) <= tokensPerMinute;
  }
}

function upstreamsOf({ request }: Asking): readonly string[] {
  return request.targets.map(({ upstream }) => upstream);
}

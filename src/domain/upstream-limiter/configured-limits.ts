import type { LimitUse, UpstreamLimit } from '../ports/quotas.ts';
import type { LimiterSettings, RequestTokens } from '../ports/upstream-limiters.ts';
import type { Load, CallInFlight } from './load.ts';
import { MinuteWindow, arrivalJitterMs, minuteMs } from './minute-window.ts';

/** How much of a limit this process may use now. */
export type QuotaOf = (limit: UpstreamLimit) => number;

/**
 * What counts: a process that shares its limits with others may have less of them than there is. `certain` is what a request has
 * to wait for at least: the whole limit, of which nothing is used by those in progress, as they may end at any moment and with
 * less than was expected of them.
 */
export type Extent = 'quota' | 'whole' | 'certain';

/**
 * The configured limits of an upstream, which its own count of any 60 seconds never finds exceeded: a start counts for a
 * minute and the jitter of arrivals; tokens count as expected from the start to the end of a request, and as used for a
 * minute and the jitter after it, as an upstream may count them at either.
 */
export class ConfiguredLimits {
  limits: Pick<LimiterSettings, UpstreamLimit>;
  readonly #quotaOf: QuotaOf;
  readonly #starts = new MinuteWindow();
  readonly #tokens = new MinuteWindow();
  #runningTokens = 0;

  constructor(limits: Pick<LimiterSettings, UpstreamLimit>, quotaOf: QuotaOf) {
    this.limits = limits;
    this.#quotaOf = quotaOf;
  }

  /** The limit that is in force here, or the whole limit of the upstream; `null` where none is set. */
  most(limit: UpstreamLimit, extent: Extent = 'quota'): number | null {
    const most = this.limits[limit];
    return most === null || extent !== 'quota' ? most : Math.min(most, this.#quotaOf(limit));
  }

  /** When a request may start: now or earlier if it may at once; `Infinity` if another one has to end first. */
  availableAtMs(tokens: RequestTokens, extent: Extent, nowMs: number): number {
    const requestsPerMinute = this.most('requestsPerMinute', extent);
    const tokensPerMinute = this.most('tokensPerMinute', extent);
    let atMs = nowMs;
    if (requestsPerMinute !== null)
      atMs = this.#starts.overAtMs(this.#starts.sum(nowMs) + 1 - requestsPerMinute, nowMs);
    if (tokensPerMinute === null) return atMs;
    // A request that may take more than a minute's tokens alone would never start.
    const wanted = Math.min(tokens.input + tokens.output, this.limits.tokensPerMinute ?? 0);
    const running = extent === 'certain' ? 0 : this.#runningTokens;
    const over = this.#tokens.sum(nowMs) + running + wanted - tokensPerMinute;
    return Math.max(atMs, this.#tokens.overAtMs(over, nowMs));
  }

  /** How long requests wait for these limits if they start one after the other, in milliseconds: an estimate. */
  waitMs(requests: number, tokens: number, nowMs: number): number {
    const starts = this.most('requestsPerMinute');
    const forStarts = waitFor(this.#starts, requests, starts, 0, nowMs);
    const forTokens = waitFor(this.#tokens, tokens, this.most('tokensPerMinute'), this.#runningTokens, nowMs);
    return Math.max(forStarts, forTokens);
  }

  startsLeft(nowMs: number): number | null {
    const most = this.most('requestsPerMinute');
    return most === null ? null : Math.max(0, most - this.#starts.sum(nowMs));
  }

  tokensLeft(nowMs: number): number | null {
    const most = this.most('tokensPerMinute');
    return most === null ? null : Math.max(0, most - this.#countedTokens(nowMs));
  }

  /** What is used of each limit that is set, and what so many requests need beside that. */
  uses(upstream: string, inFlight: number, waiting: Load, nowMs: number): readonly LimitUse[] {
    const { maxInFlight, requestsPerMinute, tokensPerMinute } = this.limits;
    const uses: LimitUse[] = [];
    const add = (limit: UpstreamLimit, most: number | null, used: number, needed: number): void => {
      if (most !== null) uses.push({ upstream, limit, most, used, waiting: Math.min(most, needed) });
    };
    add('maxInFlight', maxInFlight, inFlight, waiting.requests);
    add('requestsPerMinute', requestsPerMinute, this.#starts.sum(nowMs), waiting.requests);
    add('tokensPerMinute', tokensPerMinute, this.#countedTokens(nowMs), waiting.input + waiting.output);
    return uses;
  }

  began({ tokens }: CallInFlight, nowMs: number): void {
    this.#starts.add(1, nowMs);
    this.#runningTokens += tokens.input + tokens.output;
  }

  /** A request that has started is not sent: it counts no more. */
  releasedUnused({ tokens, startedMs }: CallInFlight, nowMs: number): void {
    this.#runningTokens -= tokens.input + tokens.output;
    this.#starts.remove(1, startedMs, nowMs);
  }

  ended({ tokens }: CallInFlight, usage: RequestTokens | null, nowMs: number): void {
    this.#runningTokens -= tokens.input + tokens.output;
    const { input, output } = usage ?? tokens;
    this.#tokens.add(input + output, nowMs);
  }

  #countedTokens(nowMs: number): number {
    return this.#runningTokens + this.#tokens.sum(nowMs);
  }
}

/** How long an amount waits for a window: what leaves it comes back into it a minute later. */
function waitFor(
  window: MinuteWindow,
  amount: number,
  limit: number | null,
  running: number,
  nowMs: number,
): number {
  // Of a quota of nothing it is not known when it grows.
  if (limit === null || limit === 0) return 0;
  const counted = window.sum(nowMs);
  const over = counted + running + amount - limit;
  if (over <= 0) return 0;
  const rounds = Math.floor((over - 1) / limit);
  const rest = Math.min(over - rounds * limit, counted);
  const firstMs = rest > 0 ? window.overAtMs(rest, nowMs) - nowMs : 0;
  return firstMs + rounds * (minuteMs + arrivalJitterMs);
}

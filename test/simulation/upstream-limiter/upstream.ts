import type { Allowance } from './allowance.ts';

/** How an upstream reports its limits. */
export type HeaderFamily = 'openai' | 'anthropic' | 'plain' | 'minute' | 'retry-after' | 'none';

/** When it counts the tokens of an answer: all that it may have at its arrival, or what it had at its end. */
export type TokenCount = 'reserved' | 'at the end';

/** A call as it is sent: what it costs, and how long its parts take after it arrived. */
export interface SimulatedCall {
  readonly input: number;
  readonly outputCap: number;
  readonly output: number;
  readonly headMs: number;
  readonly totalMs: number;
}

interface UpstreamOptions {
  readonly slots?: number;
  readonly requests?: Allowance;
  readonly tokens?: Allowance;
  readonly family: HeaderFamily;
  readonly tokenCount: TokenCount;
  /** How far its clock is ahead, in milliseconds. */
  readonly clockMs: number;
}

/** What it counted: the moments at which requests arrived, and tokens were taken or answered. */
export interface Counted {
  readonly atMs: number;
  readonly amount: number;
}

/** When the simulated time began: 2027. */
const epochMs = 1_800_000_000_000;

/** An upstream with limits of its own, by which it refuses calls. */
export class SimulatedUpstream {
  readonly #options: UpstreamOptions;
  inFlight = 0;
  mostInFlight = 0;
  accepted = 0;
  refused = 0;
  readonly starts: Counted[] = [];
  /** The tokens of requests, at their arrival, and at their end. */
  readonly atArrival: Counted[] = [];
  readonly atEnd: Counted[] = [];

  constructor(options: UpstreamOptions) {
    this.#options = options;
  }

  /** A call arrives; returns whether it is accepted. */
  arrive({ input, outputCap, output }: SimulatedCall, nowMs: number): boolean {
    const { slots, requests, tokens, tokenCount } = this.#options;
    const wanted = tokenCount === 'reserved' ? input + outputCap : input;
    const isFree =
      this.inFlight < (slots ?? Number.POSITIVE_INFINITY) &&
      (requests?.left(nowMs) ?? 1) >= 1 &&
      (tokens?.left(nowMs) ?? wanted) >= wanted;
    if (!isFree) {
      this.refused++;
      return false;
    }
    requests?.take(1, nowMs);
    tokens?.take(wanted, nowMs);
    this.inFlight++;
    this.accepted++;
    this.mostInFlight = Math.max(this.mostInFlight, this.inFlight);
    this.starts.push({ atMs: nowMs, amount: 1 });
    this.atArrival.push({ atMs: nowMs, amount: input + output });
    return true;
  }

  end({ input, outputCap, output }: SimulatedCall, nowMs: number): void {
    const { tokens, tokenCount } = this.#options;
    tokens?.take(tokenCount === 'reserved' ? output - outputCap : output, nowMs);
    this.inFlight--;
    this.atEnd.push({ atMs: nowMs, amount: input + output });
  }

  /** The headers of an answer; `retry-after` belongs to refusals. */
  headers(call: SimulatedCall, isRefusal: boolean, nowMs: number): Readonly<Record<string, string>> {
    const { requests, tokens, family } = this.#options;
    const headers: Record<string, string> = {
      date: new Date(epochMs + this.#options.clockMs + nowMs).toUTCString(),
    };
    for (const [kind, allowance] of [
      ['requests', requests],
      ['tokens', tokens],
    ] as const)
      if (allowance !== undefined) Object.assign(headers, this.#limitHeaders(kind, allowance, nowMs));
    if (isRefusal && family !== 'none')
      headers['retry-after-ms'] = String(Math.ceil(this.#retryAfterMs(call, nowMs)));
    return headers;
  }

  #retryAfterMs({ input, outputCap }: SimulatedCall, nowMs: number): number {
    const { requests, tokens } = this.#options;
    const forRequests = requests === undefined || requests.left(nowMs) >= 1 ? 0 : requests.afterMs(1, nowMs);
    const wanted = input + outputCap;
    const forTokens =
      tokens === undefined || tokens.left(nowMs) >= wanted ? 0 : tokens.afterMs(wanted, nowMs);
    return Math.max(forRequests, forTokens, 100);
  }

  #limitHeaders(kind: 'requests' | 'tokens', allowance: Allowance, nowMs: number): Record<string, string> {
    const limit = String(allowance.limit);
    const remaining = String(Math.max(0, Math.floor(allowance.left(nowMs))));
    const resetMs = allowance.resetMs(nowMs);
    switch (this.#options.family) {
      case 'openai':
        return {
          [`x-ratelimit-limit-${kind}`]: limit,
          [`x-ratelimit-remaining-${kind}`]: remaining,
          [`x-ratelimit-reset-${kind}`]:
            resetMs < 1_000 ? `${Math.floor(resetMs)}ms` : `${(resetMs / 1_000).toFixed(3)}s`,
        };
      case 'anthropic': {
        const moment = new Date(epochMs + this.#options.clockMs + nowMs + resetMs);
        return {
          [`anthropic-ratelimit-${kind}-limit`]: limit,
          [`anthropic-ratelimit-${kind}-remaining`]: remaining,
          [`anthropic-ratelimit-${kind}-reset`]: `${moment.toISOString().slice(0, 19)}Z`,
        };
      }
      case 'plain':
        if (kind === 'tokens') return {};
        return {
          'x-ratelimit-limit': limit,
          'x-ratelimit-remaining': remaining,
          'x-ratelimit-reset': String(Math.floor(resetMs / 1_000)),
        };
      case 'minute': {
        const name = kind === 'requests' ? 'req' : 'tokens';
        return {
          [`x-ratelimit-limit-${name}-minute`]: limit,
          [`x-ratelimit-remaining-${name}-minute`]: remaining,
        };
      }
      case 'retry-after':
      case 'none':
        return {};
    }
  }
}

/** The most that was counted in any time of a length. */
export function mostWithin(counted: readonly Counted[], lengthMs: number): number {
  const sorted = counted.toSorted((a, b) => a.atMs - b.atMs);
  let most = 0;
  let sum = 0;
  let first = 0;
  for (const { atMs, amount } of sorted) {
    sum += amount;
    while ((sorted[first]?.atMs ?? atMs) <= atMs - lengthMs) sum -= sorted[first++]?.amount ?? 0;
    most = Math.max(most, sum);
  }
  return most;
}

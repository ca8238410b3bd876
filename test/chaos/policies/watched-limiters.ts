import type { MemoryUpstreamLimiters } from '../../../src/coordination/upstream-limiter/memory-upstream-limiters.ts';
import type {
  AcquireResult,
  Permit,
  PermitRequest,
  RequestTokens,
  UpstreamLimiters,
} from '../../../src/domain/ports/upstream-limiters.ts';
import type { Target } from '../../../src/domain/upstreams/sent-request.ts';
import type { FakeClock } from '../../support/fake-clock.ts';

/** A request that asked for a permit. */
export interface Asking {
  readonly request: PermitRequest;
  readonly sinceMs: number;
}

/** A permit that was given; `releasedMs` is `null` as long as it is held. */
export interface GivenPermit {
  readonly upstream: string;
  readonly tokens: RequestTokens;
  readonly acquiredMs: number;
  releasedMs: number | null;
  /** What it used by what the gateway knows. */
  used: number;
}

/** Passes on to limiters, and notes the requests that ask, wait, get a permit and release it. */
export class WatchedLimiters implements UpstreamLimiters {
  readonly #limiters: MemoryUpstreamLimiters;
  readonly #clock: FakeClock;
  readonly waitingNow = new Set<Asking>();
  readonly permits: GivenPermit[] = [];
  readonly faults: string[] = [];
  waits = 0;
  refusals = 0;
  waitedMs = 0;

  constructor(limiters: MemoryUpstreamLimiters, clock: FakeClock) {
    this.#limiters = limiters;
    this.#clock = clock;
  }

  limits(target: Target): boolean {
    return this.#limiters.limits(target);
  }

  acquire(request: PermitRequest, signal: AbortSignal): AcquireResult | Promise<AcquireResult> {
    const asking: Asking = {
      request: { ...request, targets: [...request.targets] },
      sinceMs: this.#clock.monotonicMs(),
    };
    const result = this.#limiters.acquire(request, signal);
    if (!(result instanceof Promise)) return this.#note(asking, result);
    this.waitingNow.add(asking);
    return result.then((later) => {
      this.waitingNow.delete(asking);
      if (!signal.aborted || later.kind === 'acquired') this.waits++;
      this.waitedMs += this.#clock.monotonicMs() - asking.sinceMs;
      return this.#note(asking, later);
    });
  }

  tryAcquire(request: Parameters<UpstreamLimiters['tryAcquire']>[0]): Permit | null {
    const permit = this.#limiters.tryAcquire(request);
    return permit === null || !this.limits(permit)
      ? permit
      : this.#give(permit, request.tokens, `a second request of ${request.keyId}`);
  }

  waiting(requestId: string): ReturnType<UpstreamLimiters['waiting']> {
    return this.#limiters.waiting(requestId);
  }

  pausedMs(target: Target): number {
    return this.#limiters.pausedMs(target);
  }

  views(): ReturnType<UpstreamLimiters['views']> {
    return this.#limiters.views();
  }

  #note(asking: Asking, result: AcquireResult): AcquireResult {
    if (result.kind === 'full' || result.kind === 'timed_out') this.refusals++;
    if (result.kind !== 'acquired' || !this.limits(result.permit)) return result;
    const { keyId, requestId, tokens, weight } = asking.request;
    const ways = waysOf(asking.request);
    for (const { request: other } of this.waitingNow) {
      const isSame = other.keyId === keyId && other.weight === weight && waysOf(other) === ways;
      if (isSame && this.#isEarlier(other, asking))
        this.faults.push(`${requestId} passed ${other.requestId} of its key`);
    }
    return { ...result, permit: this.#give(result.permit, tokens, requestId) };
  }

  /** Those in the set came in its order. */
  #isEarlier(other: PermitRequest, { request, sinceMs }: Asking): boolean {
    for (const asking of this.waitingNow)
      if (asking.request === other) return other !== request && asking.sinceMs < sinceMs;
    return false;
  }

  #give(permit: Permit, tokens: RequestTokens, requestId: string): Permit {
    const { upstream } = permit;
    const given: GivenPermit = {
      upstream,
      tokens,
      acquiredMs: this.#clock.monotonicMs(),
      releasedMs: null,
      used: 0,
    };
    this.permits.push(given);
    const release = (used: number): void => {
      if (given.releasedMs !== null) this.faults.push(`the permit of ${requestId} was given back twice`);
      given.releasedMs = this.#clock.monotonicMs();
      given.used = used;
    };
    return {
      ...permit,
      answered: (...head) => permit.answered(...head),
      release: (usage) => {
        const { input, output } = usage ?? given.tokens;
        release(input + output);
        permit.release(usage);
      },
      releaseUnused: () => {
        release(0);
        permit.releaseUnused();
      },
    };
  }
}

function waysOf({ targets }: PermitRequest): string {
  return targets
    .map((target) => JSON.stringify(target))
    .toSorted()
    .join();
}

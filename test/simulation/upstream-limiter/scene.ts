import { MemoryUpstreamLimiters } from '../../../src/coordination/upstream-limiter/memory-upstream-limiters.ts';
import type { Clock } from '../../../src/domain/ports/clock.ts';
import type {
  AcquireResult,
  LimiterSettings,
  RequestTokens,
} from '../../../src/domain/ports/upstream-limiters.ts';
import { readLimitHeaders } from '../../../src/protocol/upstream/limit-headers.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { VirtualTime } from '../virtual-time.ts';
import type { SimulatedCall, SimulatedUpstream } from './upstream.ts';

/** The most attempts of a request: each refusal by the upstream takes one. */
const maxAttempts = 4;

/** What became of a request. */
export interface Sent {
  readonly keyId: string;
  readonly result: 'answered' | 'full' | 'timed_out' | 'refused';
  /** The waits for permits, and what was announced at the first one, in milliseconds. */
  readonly waitedMs: number;
  readonly announcedMs: number;
  readonly cameMs: number;
}

/** A request of the simulation. */
export interface SimulatedRequest {
  /** The id by which the limiters know it; a number without one. */
  readonly requestId?: string;
  readonly keyId: string;
  /** The key by which the limiters grant permits: one for all makes them serve by age. */
  readonly fairKeyId?: string;
  readonly weight?: number;
  readonly upstreams: readonly string[];
  /** What the gateway expects of it at most. */
  readonly expected: RequestTokens;
  readonly call: SimulatedCall;
}

interface SceneOptions {
  readonly seed: number;
  readonly upstreams: Readonly<Record<string, SimulatedUpstream>>;
  readonly settings: Readonly<Record<string, LimiterSettings>>;
  /** How long a call takes to its upstream at most, and an answer from there, in milliseconds. */
  readonly jitterMs: number;
}

/** Limiters before simulated upstreams, on virtual time. */
export class LimitersScene {
  readonly time = new VirtualTime();
  readonly random: () => number;
  readonly limiters: MemoryUpstreamLimiters;
  readonly #options: SceneOptions;
  #requests = 0;

  constructor(options: SceneOptions) {
    this.#options = options;
    this.random = seededNumbers(options.seed);
    const clock: Clock = {
      now: () => this.time.nowMs,
      monotonicMs: () => this.time.nowMs,
      schedule: (delayMs, callback) => this.time.after(delayMs, callback),
    };
    this.limiters = new MemoryUpstreamLimiters(clock, new Map(Object.entries(options.settings)));
  }

  sleep(durationMs: number): Promise<void> {
    return new Promise((resolve) => this.time.after(durationMs, resolve));
  }

  /** Sends a request through the limiters to an upstream, once more after a refusal, as the gateway does. */
  async send(request: SimulatedRequest): Promise<Sent> {
    const { keyId, fairKeyId = keyId, weight = 1, upstreams, expected, call } = request;
    const { requestId = String(this.#requests++) } = request;
    const targets = upstreams.map((upstream) => ({ upstream, model: 'usual' }));
    const cameMs = this.time.nowMs;
    let waitedMs = 0;
    let announcedMs = 0;
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const result: AcquireResult = await this.limiters.acquire(
        { requestId, keyId: fairKeyId, weight, targets, tokens: expected, waitedMs },
        new AbortController().signal,
      );
      if (result.kind === 'interrupted') throw new Error('nothing interrupts requests here');
      if (result.kind !== 'acquired') return { keyId, result: result.kind, waitedMs, announcedMs, cameMs };
      waitedMs += result.waitedMs;
      if (attempt === 0) announcedMs = result.expectedMs;
      if (await this.#call(result.permit, call))
        return { keyId, result: 'answered', waitedMs, announcedMs, cameMs };
    }
    return { keyId, result: 'refused', waitedMs, announcedMs, cameMs };
  }

  async #call(
    permit: Extract<AcquireResult, { kind: 'acquired' }>['permit'],
    call: SimulatedCall,
  ): Promise<boolean> {
    const upstream = this.#options.upstreams[permit.upstream];
    if (upstream === undefined) throw new Error(`there is no upstream ${permit.upstream}`);
    await this.#travel();
    const arrivedMs = this.time.nowMs;
    const isAccepted = upstream.arrive(call, arrivedMs);
    const headers = upstream.headers(call, !isAccepted, arrivedMs);
    if (isAccepted) await this.sleep(call.headMs);
    await this.#travel();
    const retryAfter = headers['retry-after-ms'];
    permit.answered(
      isAccepted ? 200 : 429,
      retryAfter === undefined ? null : Number(retryAfter),
      readLimitHeaders((name) => headers[name]),
    );
    if (isAccepted) {
      await this.sleep(Math.max(0, arrivedMs + call.totalMs - this.time.nowMs));
      upstream.end(call, this.time.nowMs);
      await this.#travel();
    }
    permit.release(isAccepted ? { input: call.input, output: call.output } : { input: 0, output: 0 });
    return isAccepted;
  }

  #travel(): Promise<void> {
    return this.sleep(this.random() * this.#options.jitterMs);
  }
}

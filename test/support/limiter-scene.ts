import { setImmediate } from 'node:timers/promises';
import { MemoryUpstreamLimiters } from '../../src/coordination/upstream-limiter/memory-upstream-limiters.ts';
import type {
  AcquireResult,
  LimitSettings,
  Permit,
  PermitRequest,
  LimiterSettings,
  UpstreamLimiters,
} from '../../src/domain/ports/upstream-limiters.ts';
import type { LimitQuotas } from '../../src/domain/ports/quotas.ts';
import type { Target } from '../../src/domain/upstreams/sent-request.ts';
import { createFakeClock } from './fake-clock.ts';
import type { FakeClock } from './fake-clock.ts';

/** Settings of limits, of which those are set that are given. */
export function limitSettings(own: Partial<LimitSettings>): LimitSettings {
  return {
    maxInFlight: null,
    requestsPerMinute: null,
    tokensPerMinute: null,
    learnLimits: false,
    queue: 100,
    queueWaitMs: 30_000,
    ...own,
  };
}

/** Settings of an upstream, without limits but those given. */
export function limiterSettings({ models = new Map(), ...own }: Partial<LimiterSettings>): LimiterSettings {
  return { ...limitSettings(own), models };
}

/** Where requests go that are asked for an upstream: to one model there. */
export function at(upstream: string, model = 'usual'): Target {
  return { upstream, model };
}

/** A request that came, and what became of it; `result` is `null` as long as it waits. */
export interface Came {
  readonly id: string;
  readonly abort: AbortController;
  result: AcquireResult | null;
}

/** What is not usual of a request; it goes to all upstreams unless they, or its targets, are named. */
type ComeOptions = Partial<PermitRequest> & { readonly upstreams?: readonly string[] };

export interface LimiterScene {
  readonly clock: FakeClock;
  readonly limiters: UpstreamLimiters &
    Pick<MemoryUpstreamLimiters, 'configure' | 'forget' | 'uses' | 'serve'>;
  /** The ids of those that entered, in their order. */
  readonly acquired: string[];
  readonly come: (id: string, own?: ComeOptions) => Came;
  /** Lets the time pass, and promises be settled. */
  readonly pass: (durationMs: number) => Promise<void>;
}

/** The permit of a request that got one. */
export function permitOf({ id, result }: Came): Permit {
  if (result?.kind !== 'acquired') throw new Error(`${id} is ${result?.kind ?? 'waiting'}`);
  return result.permit;
}

/** Limiters by their settings. An id such as `a1` is of the key `a`. */
export function openLimiters(
  settings: Readonly<Record<string, Partial<LimiterSettings>>>,
  options: { readonly pausedMs?: (target: Target) => number; readonly quotas?: LimitQuotas } = {},
): LimiterScene {
  const clock = createFakeClock();
  const limiters = new MemoryUpstreamLimiters(
    clock,
    new Map(Object.entries(settings).map(([name, own]) => [name, limiterSettings(own)])),
    options,
  );
  const acquired: string[] = [];
  return {
    clock,
    limiters,
    acquired,
    come(id, { upstreams = Object.keys(settings), ...own } = {}) {
      const came: Came = { id, abort: new AbortController(), result: null };
      const note = (result: AcquireResult): void => {
        came.result = result;
        if (result.kind === 'acquired') acquired.push(id);
      };
      const result = limiters.acquire(
        {
          requestId: id,
          keyId: id.slice(0, 1),
          weight: 1,
          targets: upstreams.map((upstream) => at(upstream)),
          tokens: { input: 0, output: 0 },
          waitedMs: 0,
          ...own,
        },
        came.abort.signal,
      );
      if (result instanceof Promise) void result.then(note);
      else note(result);
      return came;
    },
    async pass(durationMs) {
      clock.advance(durationMs);
      await setImmediate();
    },
  };
}

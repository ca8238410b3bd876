import type { PermitSummary } from '../../domain/exchange-summary.ts';
import { permitRefusal } from '../../domain/upstream-limiter/permit-refusal.ts';
import type { NoPermit } from '../../domain/upstream-limiter/permit-refusal.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Telemetry } from '../../domain/ports/telemetry.ts';
import type {
  AcquireResult,
  Permit,
  PermitRequest,
  UpstreamLimiters,
} from '../../domain/ports/upstream-limiters.ts';
import type { Availability } from '../../domain/upstreams/circuit.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';
import type { UpstreamHealth } from '../../domain/upstreams/upstream-health.ts';
import type { FailedAttempt } from '../attempts/first-part.ts';
import { draining } from '../in-flight.ts';
import type { InFlight } from '../in-flight.ts';
import { interruptedBy, refused } from '../results.ts';
import type { ExchangeResult } from '../results.ts';
import { HeldPermit, nothingUsed } from './held-permit.ts';

/** How often a waiting request checks for an upstream that has come back meanwhile, in milliseconds. */
const refreshMs = 500;

/** Whose request it is, and how many tokens it may use. */
export type PermitTerms = Pick<PermitRequest, 'keyId' | 'weight' | 'tokens'>;

/** The request that permits are for. */
interface PermittedRequest {
  readonly requestId: string;
  readonly interruption: Pick<AbortController, 'signal'>;
}

/** What permits depend on beside the request. */
interface PermitPorts {
  readonly clock: Clock;
  readonly health: UpstreamHealth;
  readonly inFlight: InFlight;
  readonly telemetry: Telemetry;
  readonly upstreamLimiters: UpstreamLimiters;
}

/**
 * The permits of one request: the permit of the attempt that is made next or runs, and the waits
 * for it. It has a permit at one upstream at a time.
 */
export class RequestPermits {
  readonly #terms: PermitTerms;
  readonly #request: PermittedRequest;
  readonly #ports: PermitPorts;
  #permit: HeldPermit | null = null;
  #waitMs = 0;
  #firstWaitMs = 0;
  #refusal: NoPermit | null = null;

  constructor(terms: PermitTerms, request: PermittedRequest, ports: PermitPorts) {
    this.#terms = terms;
    this.#request = request;
    this.#ports = ports;
  }

  /** The latest permit; `null` before the first one. */
  get permit(): HeldPermit | null {
    return this.#permit;
  }

  get summary(): PermitSummary {
    return {
      upstream: this.#permit?.upstream ?? null,
      limitedModel: this.#permit?.isOfModel === true ? this.#permit.model : null,
      firstWaitMs: this.#firstWaitMs,
      waitMs: this.#waitMs,
      refusal: this.#refusal,
    };
  }

  /** Whether the request waited before it was sent for the first time. */
  get hasWaited(): boolean {
    return this.#firstWaitMs > 0;
  }

  /** How long the request waited after it was sent for the first time, in milliseconds. */
  get laterWaitMs(): number {
    return this.#waitMs - this.#firstWaitMs;
  }

  /**
   * Acquires the first permit, before the record is begun: a request that waits holds no money, and one that is refused costs the
   * database nothing. Returns how the request ends if it got none, or `null`.
   */
  async begin(ways: readonly Target[]): Promise<ExchangeResult | null> {
    const result = await this.#choose(ways);
    this.#firstWaitMs = this.#waitMs;
    if (result === null || result.kind === 'acquired') return null;
    if (result.kind !== 'interrupted') {
      this.#refusal = result;
      return refused(permitRefusal(result));
    }
    const { signal } = this.#request.interruption;
    return signal.aborted ? interruptedBy(signal, null) : refused(draining());
  }

  /**
   * Removes from some routes the one that is tried next, which has a permit then: the first one, or the one that was kept because
   * a connection was stale. `null` if none is left, or no permit is free.
   */
  async next<Route extends Target>(untried: Route[]): Promise<Route | null> {
    const find = (): number =>
      this.#permit?.isHeld === true ? bestAt(untried, this.#permit, this.#terms.keyId, this.#ports) : -1;
    if (find() === -1) {
      this.end();
      await this.#choose(untried);
    }
    const at = find();
    return at === -1 ? null : (untried.splice(at, 1)[0] ?? null);
  }

  /**
   * Removes from some routes the first one whose upstream is available and has a permit free, which it acquires: for a
   * request that is sent beside another one, and never waits.
   */
  takeFree<Route extends Target>(
    untried: Route[],
  ): { readonly route: Route; readonly permit: HeldPermit } | null {
    const { upstreamLimiters } = this.#ports;
    const targets = untried.filter((way) => this.#is(way, 'available'));
    if (targets.length === 0) return null;
    const permit = upstreamLimiters.tryAcquire({ ...this.#terms, targets });
    if (permit === null) return null;
    const at = bestAt(untried, permit, this.#terms.keyId, this.#ports);
    const [route] = untried.splice(at, 1);
    return route === undefined ? null : { route, permit: new HeldPermit(permit) };
  }

  /**
   * Whether a request may wait for the same route again: its upstream only said that it came too early, and for how long. One
   * that is not known to pause would be asked again at once.
   */
  mayReturn({ ending, route }: Pick<FailedAttempt, 'ending' | 'route'>): boolean {
    if (ending.kind !== 'failed' || ending.failure.kind !== 'rate_limited') return false;
    return this.#ports.upstreamLimiters.pausedMs(route) > 0;
  }

  /** Releases a permit that no attempt has released. */
  end(): void {
    this.#permit?.release(nothingUsed, null);
  }

  /**
   * Acquires a permit at one of the upstreams, and waits for it if the request may. While it waited, that upstream may have begun
   * to fail and another one to work again: then it chooses once more.
   */
  async #choose(ways: readonly Target[]): Promise<AcquireResult | null> {
    for (;;) {
      const targets = candidates(ways, this.#terms.keyId, this.#ports);
      if (targets.length === 0) return null;
      const result = await this.#acquire(targets, ways);
      if (result.kind === 'timed_out') this.#waitMs += result.waitedMs;
      if (result.kind === 'interrupted') return result;
      if (result.kind !== 'acquired') return this.#enterFailing(ways) ?? result;
      const { permit, waitedMs } = result;
      this.#waitMs += waitedMs;
      this.#permit = new HeldPermit(permit);
      if (waitedMs === 0 || includesWay(candidates(ways, this.#terms.keyId, this.#ports), permit))
        return result;
      this.#permit.release(nothingUsed, null);
    }
  }

  #is(way: Target, availability: Availability): boolean {
    return this.#ports.health.availability(way, this.#terms.keyId) === availability;
  }

  /** Acquires a permit at an upstream that fails, where no other one takes the request: an answer is possible there. */
  #enterFailing(ways: readonly Target[]): AcquireResult | null {
    const { upstreamLimiters } = this.#ports;
    const targets = ways.filter((way) => this.#is(way, 'failing'));
    const permit = targets.length === 0 ? null : upstreamLimiters.tryAcquire({ ...this.#terms, targets });
    if (permit === null) return null;
    this.#permit = new HeldPermit(permit);
    return { kind: 'acquired', permit, waitedMs: 0, expectedMs: 0 };
  }

  /** Acquires a permit, or waits until one is free, the time is up, the request must stop, or the gateway drains. */
  async #acquire(targets: readonly Target[], ways: readonly Target[]): Promise<AcquireResult> {
    const { requestId, interruption } = this.#request;
    const { clock, inFlight, upstreamLimiters, telemetry } = this.#ports;
    if (interruption.signal.aborted) return { kind: 'interrupted' };
    const left = new AbortController();
    const acquiring = upstreamLimiters.acquire(
      { ...this.#terms, requestId, targets, waitedMs: this.#waitMs },
      left.signal,
    );
    if (!(acquiring instanceof Promise)) return acquiring;
    const leave = (): void => left.abort();
    const ends = [interruption.signal, inFlight.draining];
    for (const signal of ends) signal.addEventListener('abort', leave);
    if (inFlight.draining.aborted) leave();
    const sinceMs = clock.monotonicMs();
    telemetry.waitBegan('upstream');
    const others = this.#watchOthers(ways, targets, leave);
    try {
      const result = await acquiring;
      const permit = others?.found() ?? null;
      if (permit === null && result.kind === 'interrupted') this.#waitMs += clock.monotonicMs() - sinceMs;
      if (permit === null) return result;
      if (result.kind === 'acquired') result.permit.releaseUnused();
      return { kind: 'acquired', permit, waitedMs: clock.monotonicMs() - sinceMs, expectedMs: 0 };
    } finally {
      others?.stop();
      telemetry.waitEnded('upstream', clock.monotonicMs() - sinceMs);
      for (const signal of ends) signal.removeEventListener('abort', leave);
    }
  }

  /**
   * Checks again and again whether an upstream can be used for which the request does not wait, as it paused or failed when the
   * wait began: with a permit there, `leave` is called. `null` if the request waits for all of its upstreams.
   */
  #watchOthers(
    ways: readonly Target[],
    waitedFor: readonly Target[],
    leave: () => void,
  ): { readonly found: () => Permit | null; readonly stop: () => void } | null {
    if (ways.every((way) => includesWay(waitedFor, way))) return null;
    const { clock, upstreamLimiters } = this.#ports;
    let permit: Permit | null = null;
    const refresh = (): void => {
      const targets = candidates(ways, this.#terms.keyId, this.#ports).filter(
        (way) => !includesWay(waitedFor, way),
      );
      permit = targets.length === 0 ? null : upstreamLimiters.tryAcquire({ ...this.#terms, targets });
      if (permit === null) cancel = clock.schedule(refreshMs, refresh);
      else leave();
    };
    let cancel = clock.schedule(refreshMs, refresh);
    return { found: () => permit, stop: () => cancel() };
  }
}

/**
 * Where a request may be sent: to what is available, else to what is failing, and to what pauses where the request can wait
 * for the end of that.
 */
function candidates(
  ways: readonly Target[],
  keyId: string,
  { health, upstreamLimiters }: Pick<PermitPorts, 'health' | 'upstreamLimiters'>,
): readonly Target[] {
  const graded = ways.map((way) => ({ way, availability: health.availability(way, keyId) }));
  const best = graded.some(({ availability }) => availability === 'available') ? 'available' : 'failing';
  const fit = graded.flatMap(({ way, availability }) =>
    (availability === 'cooling' ? upstreamLimiters.limits(way) : availability === best) ? [way] : [],
  );
  return fit.filter((way, at) => !includesWay(fit.slice(0, at), way));
}

/** Whether some ways have one to the same model at the same upstream. */
function includesWay(ways: readonly Target[], { upstream, model }: Target): boolean {
  return ways.some((way) => way.upstream === upstream && way.model === model);
}

/**
 * Where in a list the best of the ways that a permit allows is: the first that is available, else one that is failing, else any.
 */
function bestAt(
  ways: readonly Target[],
  permit: Target,
  keyId: string,
  { health }: Pick<PermitPorts, 'health'>,
): number {
  const there = ways.filter((way) => includesWay([permit], way));
  const find = (wanted: Availability): Target | undefined =>
    there.find((way) => health.availability(way, keyId) === wanted);
  const best = find('available') ?? find('failing') ?? there[0];
  return best === undefined ? -1 : ways.indexOf(best);
}

import type { RoomSummary } from '../../domain/exchange-summary.ts';
import type { Availability } from '../../domain/upstreams/circuit.ts';
import type { Entry, Place, RoomRequest } from '../../domain/ports/rooms.ts';
import { roomRefusal } from '../../domain/room-refusal.ts';
import type { NoPlace } from '../../domain/room-refusal.ts';
import { draining } from '../admission/admit.ts';
import type { Exchange } from '../exchange.ts';
import type { FailedAttempt } from '../attempts/first-part.ts';
import { bestAt, candidates, includesWay } from './candidates.ts';
import type { Way } from './candidates.ts';
import { HeldPlace, nothingUsed } from './held-place.ts';
import type { Ports } from '../ports.ts';
import { interruptedBy, refused } from '../results.ts';
import type { ExchangeResult } from '../results.ts';

/** How often a waiting request looks for an upstream that has come back meanwhile, in milliseconds. */
const lookAgainMs = 500;

/** Whose request it is, and how many tokens it may use. */
export type VisitTerms = Pick<RoomRequest, 'keyId' | 'weight' | 'tokens'>;

/**
 * The visit of one request to the rooms of its upstreams: the place of the attempt that is made next or runs, and the waits
 * for it. It has a place at one upstream at a time.
 */
export class RoomVisit {
  readonly #terms: VisitTerms;
  readonly #exchange: Exchange;
  readonly #ports: Ports;
  #place: HeldPlace | null = null;
  #waitMs = 0;
  #firstWaitMs = 0;
  #refusal: NoPlace | null = null;

  constructor(terms: VisitTerms, exchange: Exchange, ports: Ports) {
    this.#terms = terms;
    this.#exchange = exchange;
    this.#ports = ports;
  }

  /** The latest place; `null` before the first one. */
  get place(): HeldPlace | null {
    return this.#place;
  }

  get summary(): RoomSummary {
    return {
      upstream: this.#place?.upstream ?? null,
      limitedModel: this.#place?.isOfModel === true ? this.#place.model : null,
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
   * Takes the first place, before the record is begun: a request that waits holds no money, and one that is refused costs the
   * database nothing. Returns how the request ends if it got none, or `null`.
   */
  async begin(ways: readonly Way[]): Promise<ExchangeResult | null> {
    const entry = await this.#choose(ways);
    this.#firstWaitMs = this.#waitMs;
    if (entry === null || entry.kind === 'entered') return null;
    if (entry.kind !== 'interrupted') {
      this.#refusal = entry;
      return refused(roomRefusal(entry));
    }
    const { signal } = this.#exchange.interruption;
    return signal.aborted ? interruptedBy(signal, null) : refused(draining());
  }

  /**
   * Removes from some routes the one that is tried next, which has a place then: the first one, or the one that was kept because
   * a connection was stale. `null` if none is left, or none has room.
   */
  async next<Route extends Way>(untried: Route[]): Promise<Route | null> {
    const find = (): number =>
      this.#place?.isHeld === true ? bestAt(untried, this.#place, this.#terms.keyId, this.#ports) : -1;
    if (find() === -1) {
      this.end();
      await this.#choose(untried);
    }
    const at = find();
    return at === -1 ? null : (untried.splice(at, 1)[0] ?? null);
  }

  /**
   * Removes from some routes the first one whose upstream is available and has room, with a place there: for a request that is
   * sent beside another one, and never waits.
   */
  takeFree<Route extends Way>(untried: Route[]): { readonly route: Route; readonly place: HeldPlace } | null {
    const { rooms } = this.#ports;
    const targets = untried.filter((way) => this.#is(way, 'available'));
    if (targets.length === 0) return null;
    const place = rooms.enterAtOnce({ ...this.#terms, targets });
    if (place === null) return null;
    const at = bestAt(untried, place, this.#terms.keyId, this.#ports);
    const [route] = untried.splice(at, 1);
    return route === undefined ? null : { route, place: new HeldPlace(place) };
  }

  /**
   * Whether a request may wait for the same route again: its upstream only said that it came too early, and for how long. One
   * that is not known to pause would be asked again at once.
   */
  mayReturn({ ending, route }: Pick<FailedAttempt, 'ending' | 'route'>): boolean {
    if (ending.kind !== 'failed' || ending.failure.kind !== 'rate_limited') return false;
    return this.#ports.rooms.pausedMs(route) > 0;
  }

  /** Gives back a place that no attempt has given back. */
  end(): void {
    this.#place?.leave(nothingUsed, null);
  }

  /**
   * Takes a place at one of the upstreams, and waits for it if the request may. While it waited, that upstream may have begun
   * to fail and another one to work again: then it chooses once more.
   */
  async #choose(ways: readonly Way[]): Promise<Entry | null> {
    for (;;) {
      const targets = candidates(ways, this.#terms.keyId, this.#ports);
      if (targets.length === 0) return null;
      const entry = await this.#enter(targets, ways);
      if (entry.kind === 'timed_out') this.#waitMs += entry.waitedMs;
      if (entry.kind === 'interrupted') return entry;
      if (entry.kind !== 'entered') return this.#enterFailing(ways) ?? entry;
      const { place, waitedMs } = entry;
      this.#waitMs += waitedMs;
      this.#place = new HeldPlace(place);
      if (waitedMs === 0 || includesWay(candidates(ways, this.#terms.keyId, this.#ports), place))
        return entry;
      this.#place.leave(nothingUsed, null);
    }
  }

  #is(way: Way, availability: Availability): boolean {
    return this.#ports.health.availability(way, this.#terms.keyId) === availability;
  }

  /** Takes a place at an upstream that fails, where no other one takes the request: an answer is possible there. */
  #enterFailing(ways: readonly Way[]): Entry | null {
    const { rooms } = this.#ports;
    const targets = ways.filter((way) => this.#is(way, 'failing'));
    const place = targets.length === 0 ? null : rooms.enterAtOnce({ ...this.#terms, targets });
    if (place === null) return null;
    this.#place = new HeldPlace(place);
    return { kind: 'entered', place, waitedMs: 0, expectedMs: 0 };
  }

  /** Enters a room, or waits until there is one, the time is up, the request must stop, or the gateway drains. */
  async #enter(targets: readonly Way[], ways: readonly Way[]): Promise<Entry> {
    const { requestId, interruption } = this.#exchange;
    const { clock, inFlight, rooms, telemetry } = this.#ports;
    if (interruption.signal.aborted) return { kind: 'interrupted' };
    const left = new AbortController();
    const entering = rooms.enter({ ...this.#terms, requestId, targets, waitedMs: this.#waitMs }, left.signal);
    if (!(entering instanceof Promise)) return entering;
    const leave = (): void => left.abort();
    const ends = [interruption.signal, inFlight.draining];
    for (const signal of ends) signal.addEventListener('abort', leave);
    if (inFlight.draining.aborted) leave();
    const sinceMs = clock.monotonicMs();
    telemetry.waitBegan('upstream');
    const others = this.#watchOthers(ways, targets, leave);
    try {
      const entry = await entering;
      const place = others?.found() ?? null;
      if (place === null && entry.kind === 'interrupted') this.#waitMs += clock.monotonicMs() - sinceMs;
      if (place === null) return entry;
      if (entry.kind === 'entered') entry.place.withdraw();
      return { kind: 'entered', place, waitedMs: clock.monotonicMs() - sinceMs, expectedMs: 0 };
    } finally {
      others?.stop();
      telemetry.waitEnded('upstream', clock.monotonicMs() - sinceMs);
      for (const signal of ends) signal.removeEventListener('abort', leave);
    }
  }

  /**
   * Looks again and again whether an upstream can be used for which the request does not wait, as it paused or failed when the
   * wait began: with a place there, `leave` is called. `null` if the request waits for all of its upstreams.
   */
  #watchOthers(
    ways: readonly Way[],
    waitedFor: readonly Way[],
    leave: () => void,
  ): { readonly found: () => Place | null; readonly stop: () => void } | null {
    if (ways.every((way) => includesWay(waitedFor, way))) return null;
    const { clock, rooms } = this.#ports;
    let place: Place | null = null;
    const look = (): void => {
      const targets = candidates(ways, this.#terms.keyId, this.#ports).filter(
        (way) => !includesWay(waitedFor, way),
      );
      place = targets.length === 0 ? null : rooms.enterAtOnce({ ...this.#terms, targets });
      if (place === null) cancel = clock.schedule(lookAgainMs, look);
      else leave();
    };
    let cancel = clock.schedule(lookAgainMs, look);
    return { found: () => place, stop: () => cancel() };
  }
}

/** Opens the visit of a request; `null` if none of its upstreams has limits. `terms` is asked for one that has. */
export function openVisit(
  ways: readonly Way[],
  terms: () => VisitTerms,
  exchange: Exchange,
  ports: Ports,
): RoomVisit | null {
  if (!ways.some((way) => ports.rooms.limits(way))) return null;
  exchange.visit = new RoomVisit(terms(), exchange, ports);
  return exchange.visit;
}

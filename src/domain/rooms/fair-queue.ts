import type { RoomTokens } from '../ports/rooms.ts';
import { Roster } from '../../shared/roster.ts';
import { firstOf, isBefore, startOf, startsOf } from './key-queue.ts';
import type { KeyQueue, QueuedTicket, Ticket } from './key-queue.ts';
import { Lanes } from './lanes.ts';
import type { IsHeld, Lane } from './lanes.ts';
import { LoadSum } from './load.ts';
import type { Ahead, Load } from './load.ts';

/** How many keys that do not wait are remembered; the others begin anew, as if they had not been served before. */
const maxRememberedKeys = 1_000;

const noneIsHeld: IsHeld = () => false;

/** What is ahead of each member while some lanes are held. */
interface KeptLoads<Member> {
  readonly held: readonly Lane[];
  readonly loads: ReadonlyMap<Ticket<Member>, Ahead>;
}

/**
 * A queue that serves keys by their weights, and the members of a key in the order of their arrival: start-time fair
 * queueing, where a key's time is set when one of its members is served. So a member that leaves the queue unserved costs
 * its key nothing, and a key that was idle has no claim on what it did not use. Members of lanes that are held are passed over:
 * they keep their places, and their key has no claim on what others used meanwhile.
 */
export class FairQueue<Member> {
  readonly #tokensOf: (member: Member) => RoomTokens;
  readonly #keys = new Map<string, KeyQueue<Member>>();
  /** The keys with members. */
  readonly #backlogged = new Set<KeyQueue<Member>>();
  #now = 0;
  #arrivals = 0;
  /** All members: a refusal names them, and must not cost more the more of them there are. */
  readonly #load = new LoadSum();
  readonly lanes = new Lanes();
  /** `null` until it is asked for after a change of the order. */
  #loadsAhead: KeptLoads<Member> | null = null;

  /** `tokensOf` says how many tokens are expected of a member, which never changes. */
  constructor(tokensOf: (member: Member) => RoomTokens) {
    this.#tokensOf = tokensOf;
  }

  get size(): number {
    return this.#load.requests;
  }

  /** All members, added up. */
  get load(): Load {
    return this.#load;
  }

  /** Adds a member behind the others of its key, which waits for any of some models. */
  join(
    keyId: string,
    weight: number,
    cost: number,
    member: Member,
    models: Lane['models'] = [null],
  ): Ticket<Member> {
    const key = this.#of(keyId, weight);
    const lane = this.lanes.join(models, this.#tokensOf(member));
    const ticket: QueuedTicket<Member> = { member, lane, arrival: this.#arrivals++, cost, key, place: null };
    if (key.members.size === 0) {
      key.since = this.#now;
      this.#backlogged.add(key);
    }
    ticket.place = key.members.add(ticket);
    this.#load.add(this.#tokensOf(member));
    this.#loadsAhead = null;
    return ticket;
  }

  /** The member that is to be served next. */
  head(isHeld: IsHeld = noneIsHeld): Ticket<Member> | null {
    let best: QueuedTicket<Member> | null = null;
    for (const key of this.#backlogged) {
      const ticket = firstOf(key, isHeld);
      if (ticket !== null && (best === null || isBefore(ticket, best))) best = ticket;
    }
    return best;
  }

  /** Takes a member out of the queue because it is served; returns whether it was in it. */
  serve(ticket: Ticket<Member>): boolean {
    const { key, cost } = ticket as QueuedTicket<Member>;
    if (!this.leave(ticket)) return false;
    this.#charge(key, startOf(key), cost);
    return true;
  }

  /** Serves a member of a key that did not have to wait. */
  serveAtOnce(keyId: string, weight: number, cost: number): void {
    const key = this.#of(keyId, weight);
    this.#charge(key, Math.max(this.#now, key.finish), cost);
  }

  /** Takes a member out of the queue that goes without being served; returns whether it was in it. */
  leave(ticket: Ticket<Member>): boolean {
    const { key, place, lane } = ticket as QueuedTicket<Member>;
    if (place === null || !key.members.remove(place)) return false;
    this.#load.remove(this.#tokensOf(ticket.member));
    this.lanes.leave(lane, this.#tokensOf(ticket.member));
    this.#loadsAhead = null;
    if (key.members.size === 0) this.#backlogged.delete(key);
    return true;
  }

  /** Corrects what a key was charged for a member that has been served: by `cost`, which may be less than 0. */
  correct(keyId: string, cost: number): void {
    const key = this.#keys.get(keyId);
    if (key === undefined) return;
    key.finish += cost / key.weight;
    this.#loadsAhead = null;
  }

  /**
   * The members that are to be served before this one if no other one comes, added up, but for those of other lanes that are
   * held. Where all members are asked after in turn, `loadsAhead` costs as much as a few of these.
   */
  loadAhead(ticket: Ticket<Member>, isHeld: IsHeld = noneIsHeld): Ahead {
    const { key, lane } = ticket as QueuedTicket<Member>;
    const isPassed: IsHeld = (other) => other !== lane && isHeld(other);
    const all = new LoadSum();
    const ofLane = new LoadSum();
    const add = (other: Ticket<Member>): void => {
      const tokens = this.#tokensOf(other.member);
      all.add(tokens);
      if (other.lane === lane) ofLane.add(tokens);
    };
    let tag = Number.NEGATIVE_INFINITY;
    for (const { ticket: other, start } of startsOf(key, isPassed)) {
      tag = start;
      if (other === ticket) break;
      add(other);
    }
    for (const rivals of this.#backlogged) {
      if (rivals === key) continue;
      for (const { ticket: rival, start } of startsOf(rivals, isPassed)) {
        if (start > tag || (start === tag && rival.arrival > ticket.arrival)) break;
        add(rival);
      }
    }
    return { all, lane: ofLane };
  }

  /** The same for each member, in one pass for all lanes that are not held and one for each that is; kept until that changes. */
  loadsAhead(isHeld: IsHeld = noneIsHeld): ReadonlyMap<Ticket<Member>, Ahead> {
    const held = this.lanes.all().filter(isHeld);
    const kept = this.#loadsAhead;
    if (kept?.held.length === held.length && held.every((lane, at) => lane === kept.held[at]))
      return kept.loads;
    const loads = new Map<Ticket<Member>, Ahead>();
    this.#countAhead(loads, (lane) => held.includes(lane), null);
    for (const lane of held) this.#countAhead(loads, (other) => other !== lane && held.includes(other), lane);
    this.#loadsAhead = { held, loads };
    return loads;
  }

  /** Gives all members costs of another unit. What was served in the earlier one is forgotten. */
  reprice(costOf: (member: Member) => number): void {
    this.forget();
    for (const { members } of this.#backlogged)
      for (const ticket of members.all()) ticket.cost = costOf(ticket.member);
  }

  /** Forgets what was served: all keys are equal again. */
  forget(): void {
    this.#now = 0;
    this.#loadsAhead = null;
    for (const [keyId, key] of this.#keys) {
      key.since = 0;
      key.finish = 0;
      if (key.members.size === 0) this.#keys.delete(keyId);
    }
  }

  /** How many keys are remembered, for tests of bounds. */
  get keys(): number {
    return this.#keys.size;
  }

  /** Counts what is ahead of the members that are not passed over: of those of one lane, or of all. */
  #countAhead(loads: Map<Ticket<Member>, Ahead>, isHeld: IsHeld, only: Lane | null): void {
    const order = [];
    for (const key of this.#backlogged) for (const next of startsOf(key, isHeld)) order.push(next);
    order.sort((a, b) => a.start - b.start || a.ticket.arrival - b.ticket.arrival);
    const all = new LoadSum();
    const ofLanes = new Map<Lane, LoadSum>();
    for (const { ticket } of order) {
      const { lane, member } = ticket;
      const ofLane = ofLanes.get(lane) ?? new LoadSum();
      if (only === null || only === lane)
        loads.set(ticket, { all: new LoadSum(all), lane: new LoadSum(ofLane) });
      const tokens = this.#tokensOf(member);
      all.add(tokens);
      ofLane.add(tokens);
      ofLanes.set(lane, ofLane);
    }
  }

  #charge(key: KeyQueue<Member>, start: number, cost: number): void {
    this.#loadsAhead = null;
    this.#now = Math.max(this.#now, start);
    key.finish = start + cost / key.weight;
    // A key that was passed over would be served alone for as long as it was held.
    for (const other of this.#backlogged) if (startOf(other) < start) other.since = start;
  }

  #of(keyId: string, weight: number): KeyQueue<Member> {
    const known = this.#keys.get(keyId);
    if (known !== undefined) {
      known.weight = weight;
      return known;
    }
    if (this.#keys.size >= maxRememberedKeys + this.#backlogged.size) this.#forgetIdle();
    const key = { keyId, weight, since: 0, finish: 0, members: new Roster<QueuedTicket<Member>>() };
    this.#keys.set(keyId, key);
    return key;
  }

  /** Keys that do not wait, and those first that have nothing to pay off. */
  #forgetIdle(): void {
    for (const isWanted of [({ finish }: KeyQueue<Member>) => finish <= this.#now, () => true]) {
      if (this.#keys.size < maxRememberedKeys + this.#backlogged.size) return;
      for (const [keyId, key] of this.#keys)
        if (key.members.size === 0 && isWanted(key)) this.#keys.delete(keyId);
    }
  }
}

import type { RequestTokens } from '../ports/upstream-limiters.ts';
import { Roster } from '../../shared/roster.ts';
import { loadAhead, loadsAhead, isBefore, liftPassed, startOf } from './key-queue.ts';
import type { KeyQueue, QueuedTicket, Ticket } from './key-queue.ts';
import { Lanes, noLanes } from './lanes.ts';
import type { HeldLanes, Lane } from './lanes.ts';
import { LoadSum } from './load.ts';
import type { Ahead, Load } from './load.ts';

/** How many keys that do not wait are remembered; the others begin anew, as if they had not been served before. */
const maxRememberedKeys = 1_000;

/** For how long what is ahead of each member is kept, in milliseconds, though other lanes may be held meanwhile. */
const keptLoadsMs = 50;

/** What is ahead of each member. */
interface KeptLoads<Member> {
  readonly sinceMs: number;
  readonly loads: ReadonlyMap<Ticket<Member>, Ahead>;
}

/**
 * A queue that serves keys by their weights, and the members of a key in the order of their arrival: start-time fair
 * queueing, where a key's time is set when one of its members is served. So a member that leaves the queue unserved costs
 * its key nothing, and a key that was idle has no claim on what it did not use. Members of lanes that are held are passed over:
 * they keep their positions, and their key has no claim on what others used meanwhile.
 */
export class FairQueue<Member> {
  readonly #tokensOf: (member: Member) => RequestTokens;
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
  constructor(tokensOf: (member: Member) => RequestTokens) {
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
    const ticket: QueuedTicket<Member> = {
      member,
      lane,
      arrival: this.#arrivals++,
      cost,
      key,
      position: null,
      lanePosition: null,
    };
    if (key.members.size === 0) {
      key.since = this.#now;
      this.#backlogged.add(key);
    }
    ticket.position = key.members.add(ticket);
    const ofLane = key.lanes.get(lane) ?? new Roster<QueuedTicket<Member>>();
    key.lanes.set(lane, ofLane);
    ticket.lanePosition = ofLane.add(ticket);
    this.#load.add(this.#tokensOf(member));
    this.#loadsAhead = null;
    return ticket;
  }

  /** The member that is to be served next. */
  head(): Ticket<Member> | null {
    let best: QueuedTicket<Member> | null = null;
    for (const { members } of this.#backlogged) {
      const ticket = members.first?.member;
      if (ticket !== undefined && (best === null || isBefore(ticket, best))) best = ticket;
    }
    return best;
  }

  /** The first member of each key in each lane that is not held, in the order in which they are to be served. */
  firsts(held: HeldLanes): readonly Ticket<Member>[] {
    const firsts: QueuedTicket<Member>[] = [];
    for (const { lanes } of this.#backlogged)
      for (const [lane, { first }] of lanes) if (first !== null && !held.has(lane)) firsts.push(first.member);
    return firsts.toSorted((one, other) => (isBefore(one, other) ? -1 : 1));
  }

  /** Takes a member out of the queue because it is served, past those of held lanes; returns whether it was in it. */
  serve(ticket: Ticket<Member>, held: HeldLanes = noLanes): boolean {
    const { key, cost } = ticket as QueuedTicket<Member>;
    if (!this.leave(ticket)) return false;
    this.#charge(key, startOf(key), cost, held);
    return true;
  }

  /** Serves a member of a key that did not have to wait, past those of the lanes that are held: all that have members. */
  serveAtOnce(keyId: string, weight: number, cost: number, held: HeldLanes = noLanes): void {
    const key = this.#of(keyId, weight);
    this.#charge(key, Math.max(this.#now, key.finish), cost, held);
  }

  /** Takes a member out of the queue that goes without being served; returns whether it was in it. */
  leave(ticket: Ticket<Member>): boolean {
    const { key, position, lane, lanePosition } = ticket as QueuedTicket<Member>;
    if (position === null || lanePosition === null || !key.members.remove(position)) return false;
    const ofLane = key.lanes.get(lane);
    ofLane?.remove(lanePosition);
    if (ofLane?.size === 0) key.lanes.delete(lane);
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
  loadAhead(ticket: Ticket<Member>, held: HeldLanes): Ahead {
    return loadAhead(this.#queued, ticket as QueuedTicket<Member>, held);
  }

  /** The same for each member; kept until the order changes, for a short time. `heldAt` says which lanes are held. */
  loadsAhead(
    heldAt: (nowMs: number) => { readonly held: HeldLanes },
    nowMs: number,
  ): KeptLoads<Member>['loads'] {
    const kept = this.#loadsAhead;
    if (kept !== null && nowMs - kept.sinceMs < keptLoadsMs) return kept.loads;
    const loads = loadsAhead(this.#queued, heldAt(nowMs).held);
    this.#loadsAhead = { sinceMs: nowMs, loads };
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

  get #queued() {
    return { keys: this.#backlogged, tokensOf: this.#tokensOf };
  }

  #charge(key: KeyQueue<Member>, start: number, cost: number, held: HeldLanes): void {
    this.#loadsAhead = null;
    this.#now = Math.max(this.#now, start);
    key.finish = start + cost / key.weight;
    if (held.size > 0) liftPassed(this.#backlogged, key, start, held);
  }

  #of(keyId: string, weight: number): KeyQueue<Member> {
    const known = this.#keys.get(keyId);
    if (known !== undefined) {
      known.weight = weight;
      return known;
    }
    if (this.#keys.size >= maxRememberedKeys + this.#backlogged.size) this.#forgetIdle();
    const key = {
      keyId,
      weight,
      since: 0,
      finish: 0,
      members: new Roster<QueuedTicket<Member>>(),
      lanes: new Map(),
    };
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

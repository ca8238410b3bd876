import type { Position, Roster } from '../../shared/roster.ts';
import type { RequestTokens } from '../ports/upstream-limiters.ts';
import type { HeldLanes, Lane } from './lanes.ts';
import { LoadSum } from './load.ts';
import type { Ahead } from './load.ts';

/** A member's position in a queue. */
export interface Ticket<Member> {
  readonly member: Member;
  readonly lane: Lane;
  /** The order of arrival in this queue. */
  readonly arrival: number;
  /** What its service costs: in the same unit for all members of a queue. */
  readonly cost: number;
}

/** The members of one key. Times are virtual: what keys were served by then, by their weights. */
export interface KeyQueue<Member> {
  readonly keyId: string;
  weight: number;
  /** The virtual time at which it began to have members; only of use while it has some. */
  since: number;
  /** The virtual time at which what it was served so far is paid off. */
  finish: number;
  readonly members: Roster<QueuedTicket<Member>>;
  /** The same members by their lanes, those lanes alone that have some. */
  readonly lanes: Map<Lane, Roster<QueuedTicket<Member>>>;
}

/** A ticket as its queue has it. */
export interface QueuedTicket<Member> extends Ticket<Member> {
  cost: number;
  readonly key: KeyQueue<Member>;
  position: Position<QueuedTicket<Member>> | null;
  /** Its position among those of its key and lane. */
  lanePosition: Position<QueuedTicket<Member>> | null;
}

/**
 * The virtual time at which the next member of a key is served: once the key has paid off what it was served, as far as that is
 * known by now. What it had paid off before its members came is no credit.
 */
export function startOf<Member>({ since, finish }: KeyQueue<Member>): number {
  return Math.max(since, finish);
}

/** Of the first members of two keys, whether one is served before the other. */
export function isBefore<Member>(one: QueuedTicket<Member>, other: QueuedTicket<Member>): boolean {
  return (startOf(one.key) - startOf(other.key) || one.arrival - other.arrival) < 0;
}

/**
 * The members of a key that are served in turn, and the virtual times at which they will be: those of a lane that is held, or,
 * without one, all that are in no such lane.
 */
function* startsOf<Member>(key: KeyQueue<Member>, heldLane: Lane | null, held: HeldLanes) {
  const { lanes, weight } = key;
  const members = heldLane === null ? key.members : lanes.get(heldLane);
  let start = startOf(key);
  for (
    let position = members?.first ?? null;
    position !== null;
    position = members?.after(position) ?? null
  ) {
    const ticket = position.member;
    if (heldLane === null && held.has(ticket.lane)) continue;
    yield { ticket, start };
    start += ticket.cost / weight;
  }
}

/**
 * Some keys were passed over by one that was served at a time: they would be served alone for as long as they were held. So
 * those that wait for nothing but what is held are moved on to that time, all of one lane together: their order stays.
 */
export function liftPassed<Member>(
  keys: Iterable<KeyQueue<Member>>,
  served: KeyQueue<Member>,
  start: number,
  held: HeldLanes,
): void {
  const moved: [KeyQueue<Member>, Lane][] = [];
  const leads = new Map<Lane, number>();
  for (const key of keys) {
    const [lane] = key.lanes.keys();
    if (key === served || lane === undefined || ![...key.lanes.keys()].every((each) => held.has(each)))
      continue;
    moved.push([key, lane]);
    leads.set(lane, Math.max(leads.get(lane) ?? 0, start - startOf(key)));
  }
  for (const [key, lane] of moved) {
    const lead = leads.get(lane) ?? 0;
    key.since += lead;
    key.finish += lead;
  }
}

/** The keys of a queue that have members, and how many tokens are expected of a member. */
interface Queued<Member> {
  readonly keys: ReadonlySet<KeyQueue<Member>>;
  readonly tokensOf: (member: Member) => RequestTokens;
}

/**
 * The members that are to be served before this one if no other one comes, added up. Those of a lane that is held are a queue
 * of their own, beside that of all open lanes: those in it are ahead of each other, and of no others.
 */
export function loadAhead<Member>(
  { keys, tokensOf }: Queued<Member>,
  ticket: QueuedTicket<Member>,
  held: HeldLanes,
): Ahead {
  const { key, lane } = ticket;
  const all = new LoadSum();
  const ofLane = new LoadSum();
  const add = (other: Ticket<Member>): void => {
    const tokens = tokensOf(other.member);
    all.add(tokens);
    if (other.lane === lane) ofLane.add(tokens);
  };
  const heldLane = held.has(lane) ? lane : null;
  let tag = Number.NEGATIVE_INFINITY;
  for (const { ticket: other, start } of startsOf(key, heldLane, held)) {
    tag = start;
    if (other === ticket) break;
    add(other);
  }
  const addBefore = (rivals: KeyQueue<Member>, rivalLane: Lane | null): void => {
    for (const { ticket: rival, start } of startsOf(rivals, rivalLane, held)) {
      if (start > tag || (start === tag && rival.arrival > ticket.arrival)) break;
      add(rival);
    }
  };
  for (const rivals of keys) {
    if (rivals !== key) addBefore(rivals, heldLane);
    if (heldLane !== null) addBefore(rivals, null);
  }
  return { all, lane: ofLane };
}

/** The same for each member, in one pass. */
export function loadsAhead<Member>(
  { keys, tokensOf }: Queued<Member>,
  held: HeldLanes,
): ReadonlyMap<Ticket<Member>, Ahead> {
  const order = [];
  for (const key of keys) {
    order.push(...startsOf(key, null, held));
    for (const lane of key.lanes.keys()) if (held.has(lane)) order.push(...startsOf(key, lane, held));
  }
  order.sort((a, b) => a.start - b.start || a.ticket.arrival - b.ticket.arrival);
  const loads = new Map<Ticket<Member>, Ahead>();
  const open = new LoadSum();
  const ofLanes = new Map<Lane, LoadSum>();
  for (const { ticket } of order) {
    const { lane, member } = ticket;
    const ofLane = ofLanes.get(lane) ?? new LoadSum();
    const all = new LoadSum(open);
    if (held.has(lane)) all.addAll(ofLane);
    loads.set(ticket, { all, lane: new LoadSum(ofLane) });
    const tokens = tokensOf(member);
    ofLane.add(tokens);
    ofLanes.set(lane, ofLane);
    if (!held.has(lane)) open.add(tokens);
  }
  return loads;
}

import type { RequestTokens } from '../ports/upstream-limiters.ts';
import { startsOf } from './key-queue.ts';
import type { KeyQueue, QueuedTicket, Ticket } from './key-queue.ts';
import type { HeldLanes, Lane } from './lanes.ts';
import { LoadSum } from './load.ts';
import type { Ahead } from './load.ts';

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

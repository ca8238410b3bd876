import type { Place, Roster } from '../../shared/roster.ts';
import type { IsHeld, Lane } from './lanes.ts';

/** A member's place in a queue. */
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
}

/** A ticket as its queue has it. */
export interface QueuedTicket<Member> extends Ticket<Member> {
  cost: number;
  readonly key: KeyQueue<Member>;
  place: Place<QueuedTicket<Member>> | null;
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

/** The first member of a key that is not passed over. */
export function firstOf<Member>({ members }: KeyQueue<Member>, isHeld: IsHeld): QueuedTicket<Member> | null {
  let place = members.first;
  while (place !== null && isHeld(place.member.lane)) place = members.after(place);
  return place === null ? null : place.member;
}

/** The members of a key that are not passed over, and the virtual times at which they will be served. */
export function* startsOf<Member>(key: KeyQueue<Member>, isHeld: IsHeld) {
  const { members, weight } = key;
  let start = startOf(key);
  for (let place = members.first; place !== null; place = members.after(place)) {
    const ticket = place.member;
    if (isHeld(ticket.lane)) continue;
    yield { ticket, start };
    start += ticket.cost / weight;
  }
}

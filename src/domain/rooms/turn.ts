import type { RoomTokens } from '../ports/rooms.ts';
import type { FairQueue } from './fair-queue.ts';
import type { Ticket } from './key-queue.ts';
import { noLanes } from './lanes.ts';
import type { HeldLanes } from './lanes.ts';
import { noTokens } from './load.ts';
import type { Model } from './model-limits.ts';

/** Who is next in a queue. */
export interface Turn<Member> {
  /** `null` if a limit or a pause of their models holds all that wait. */
  readonly ticket: Ticket<Member> | null;
  /** For which of its models it is next. */
  readonly model: Model;
  /** When to look again, in milliseconds: 0 if it may start now, `Infinity` if a request in progress has to end first. */
  readonly inMs: number;
  /** The models for which a request waits that can't start yet. */
  readonly held: ReadonlySet<Model>;
  /** The lanes of those models alone: the next one passes them. */
  readonly lanes: HeldLanes;
}

/** In how many milliseconds a request may start, as far as its model, or its upstream, is concerned. */
interface Starts {
  readonly ofModelMs: (model: Model, tokens: RoomTokens) => number;
  readonly ofAllMs: (model: Model, tokens: RoomTokens) => number;
}

/**
 * Who is next: the first one by the fair order for one of whose models there is room. It is never passed over by one that needs
 * less of the same, neither of what its model has left nor of what all models have.
 */
export function nextTurn<Member extends { readonly request: { readonly tokens: RoomTokens } }>(
  queue: FairQueue<Member>,
  { ofModelMs, ofAllMs }: Starts,
): Turn<Member> {
  const held = new Set<Model>();
  let inMs = Number.POSITIVE_INFINITY;
  const isHeld = (model: Model, tokens: RoomTokens): boolean => {
    if (held.has(model)) return true;
    const modelMs = ofModelMs(model, tokens);
    if (modelMs <= 0) return false;
    held.add(model);
    inMs = Math.min(inMs, modelMs);
    return true;
  };
  const lanesHeld = (): HeldLanes =>
    held.size === 0
      ? noLanes
      : queue.lanes.split(({ models }) => models.every((each) => held.has(each))).held;
  const turnOf = (ticket: Ticket<Member>): Turn<Member> | null => {
    const { tokens } = ticket.member.request;
    for (const model of ticket.lane.models)
      if (!isHeld(model, tokens))
        return { ticket, model, inMs: Math.min(inMs, ofAllMs(model, tokens)), held, lanes: lanesHeld() };
    return null;
  };
  const head = queue.head();
  const first = head === null ? null : turnOf(head);
  if (first !== null) return first;
  // What a model has no room for at all is passed over at once, however many keys wait for it, and in however many lanes.
  for (const { models } of queue.lanes.all()) for (const model of models) isHeld(model, noTokens);
  const lanes = lanesHeld();
  for (const ticket of lanes.size < queue.lanes.size ? queue.firsts(lanes) : []) {
    const turn = turnOf(ticket);
    if (turn !== null) return turn;
  }
  return { ticket: null, model: null, inMs, held, lanes: lanesHeld() };
}

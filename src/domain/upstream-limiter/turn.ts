import type { RequestTokens } from '../ports/upstream-limiters.ts';
import type { FairQueue } from './fair-queue.ts';
import type { Ticket } from './key-queue.ts';
import { noLanes } from './lanes.ts';
import type { HeldLanes, Model } from './lanes.ts';
import { noTokens } from './load.ts';

/** Who is next in a queue. */
export interface Turn<Member> {
  /** `null` if a limit or a pause of their models holds all that wait. */
  readonly ticket: Ticket<Member> | null;
  /** For which of its models it is next. */
  readonly model: Model;
  /** When to refresh, in milliseconds: 0 if it may start now, `Infinity` if a request in progress has to end first. */
  readonly inMs: number;
  /** Whether a request waits that can't start yet for what a request for a model would take, too. */
  readonly isHeld: (model: Model) => boolean;
  /** The lanes of those models alone: the next one passes them. */
  readonly lanes: HeldLanes;
}

/** In how many milliseconds a request may start, as far as its model, or its upstream, is concerned. */
interface Starts {
  readonly ofModelMs: (model: Model, tokens: RequestTokens) => number;
  readonly ofAllMs: (model: Model, tokens: RequestTokens) => number;
  /** By what holds all models but some; `null` for one of these. */
  readonly ofRestMs: (model: Model, tokens: RequestTokens) => number | null;
}

/**
 * Who is next: the first one by the fair order for one of whose models a permit is free. It is never passed over by one that
 * needs less of the same, neither of what its model has left nor of what all models have.
 */
export function nextTurn<Member extends { readonly request: { readonly tokens: RequestTokens } }>(
  queue: FairQueue<Member>,
  { ofModelMs, ofAllMs, ofRestMs }: Starts,
): Turn<Member> {
  const held = new Set<Model>();
  let inMs = Number.POSITIVE_INFINITY;
  let isRestHeld = false;
  const isHeld = (model: Model): boolean =>
    held.has(model) || (isRestHeld && ofRestMs(model, noTokens) !== null);
  const isHeldFor = (model: Model, tokens: RequestTokens): boolean => {
    if (isHeld(model)) return true;
    const modelMs = ofModelMs(model, tokens);
    const restMs = ofRestMs(model, tokens) ?? 0;
    if (modelMs <= 0 && restMs <= 0) return false;
    if (modelMs > 0) held.add(model);
    isRestHeld ||= restMs > 0;
    inMs = Math.min(inMs, Math.max(modelMs, restMs));
    return true;
  };
  const lanesHeld = (): HeldLanes =>
    held.size === 0 && !isRestHeld ? noLanes : queue.lanes.split(({ models }) => models.every(isHeld)).held;
  const turnOf = (ticket: Ticket<Member>): Turn<Member> | null => {
    const { tokens } = ticket.member.request;
    for (const model of ticket.lane.models)
      if (!isHeldFor(model, tokens))
        return { ticket, model, inMs: Math.min(inMs, ofAllMs(model, tokens)), isHeld, lanes: lanesHeld() };
    return null;
  };
  const head = queue.head();
  const first = head === null ? null : turnOf(head);
  if (first !== null) return first;
  // What a model has no permit for is passed over at once, however many keys wait for it, and in however many lanes.
  for (const { models } of queue.lanes.all()) for (const model of models) isHeldFor(model, noTokens);
  const lanes = lanesHeld();
  for (const ticket of lanes.size < queue.lanes.size ? queue.firsts(lanes) : []) {
    const turn = turnOf(ticket);
    if (turn !== null) return turn;
  }
  return { ticket: null, model: null, inMs, isHeld, lanes: lanesHeld() };
}

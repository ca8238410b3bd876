import type { RoomTokens } from '../ports/rooms.ts';
import type { FairQueue } from './fair-queue.ts';
import type { Ticket } from './key-queue.ts';
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
}

/** In how many milliseconds a request may start, as far as its model, or its upstream, is concerned. */
interface Starts {
  readonly ofModelMs: (model: Model, tokens: RoomTokens) => number;
  readonly ofAllMs: (tokens: RoomTokens) => number;
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
  for (;;) {
    const ticket = queue.head(({ models }) => models.every((model) => held.has(model)));
    if (ticket === null) return { ticket, model: null, inMs, held };
    const { tokens } = ticket.member.request;
    const model = ticket.lane.models.find((each) => !held.has(each)) ?? null;
    const modelMs = ofModelMs(model, tokens);
    if (modelMs <= 0) return { ticket, model, inMs: Math.min(inMs, ofAllMs(tokens)), held };
    held.add(model);
    inMs = Math.min(inMs, modelMs);
  }
}

import { digest } from '../../shared/digest.ts';
import type { TextTurn } from '../../protocol/text.ts';
import type { Route } from '../routing.ts';
import type { OrderTerms } from './policies.ts';

/** How much of a turn or a cache key counts for the head of a conversation, in UTF-16 code units, and how many turns do. */
const maxPieceChars = 4_096;
const maxHeadTurns = 8;

/** The most requests that a route has in progress, as a multiple of its share of all: others go to the next route. */
const loadBound = 1.25;

/** How many hexadecimal digits of a digest become a number: as many as one holds exactly. */
const numberDigits = 13;

/**
 * Sends a conversation to the same route at each of its turns, so that the route finds what it read before in its cache:
 * rendezvous hashing, by which a route that is gone moves only its own conversations, each to the next one of its order.
 * The first route of the order whose load is within the bound comes first; the others follow in that order.
 */
export function orderByAffinity(terms: OrderTerms): readonly Route[] {
  const head = headOf(terms);
  const order = terms.model.routes
    .map((route) => ({ route, distance: distanceOf(head, route) }))
    .toSorted((one, other) => one.distance - other.distance)
    .map(({ route }) => route);
  const first = firstWithRoom(order, terms);
  return first === undefined ? order : [first, ...order.filter((route) => route !== first)];
}

/**
 * The digest of what stays the same in all turns of a conversation: its instructions and its first turn of the user, or what
 * the client itself named as common to some requests. It covers the key, so equal conversations of two keys are placed
 * independently: otherwise a key that sends another key's words would always reach the cache that has them, and see it by a
 * fast first text.
 */
function headOf({ keyId, model, request: { turns, promptCacheKey } }: OrderTerms): string {
  const head: (string | number)[] = [keyId, model.id];
  const pieces = promptCacheKey ? [{ role: 'prompt_cache_key', text: promptCacheKey }] : headTurns(turns);
  for (const { role, text } of pieces) head.push(role, text.length, text.slice(0, maxPieceChars));
  return digest(JSON.stringify(head));
}

/** The turns up to the first one of the user. */
function headTurns(turns: readonly TextTurn[]): readonly TextTurn[] {
  const asked = turns.findIndex(({ role }) => role === 'user');
  return turns.slice(0, Math.min(maxHeadTurns, asked === -1 ? turns.length : asked + 1));
}

/** How far a route is from a head: an exponential number, by which each route is nearest in proportion to its weight. */
function distanceOf(head: string, { upstream, model, weight }: Route): number {
  const drawn = Number.parseInt(digest(JSON.stringify([head, upstream, model])).slice(0, numberDigits), 16);
  return -Math.log((drawn + 0.5) / 16 ** numberDigits) / (weight ?? 1);
}

/** The first available route that has no more than its share of the requests in progress, with this one. */
function firstWithRoom(order: readonly Route[], { availability }: OrderTerms): Route | undefined {
  const available = order.filter((route) => availability(route) === 'available');
  let inFlight = 1;
  let weights = 0;
  for (const { measure, weight } of available) {
    inFlight += measure?.inFlight ?? 0;
    weights += weight ?? 1;
  }
  return available.find(({ measure, weight }) => {
    const most = Math.ceil((loadBound * inFlight * (weight ?? 1)) / weights);
    return (measure?.inFlight ?? 0) < most;
  });
}

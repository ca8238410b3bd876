import type { TextRequest, TextTurn } from '../../protocol/text.ts';
import { digest } from '../../shared/digest.ts';
import { usualInputTokens } from '../money/hold-estimate.ts';
import { drawInTurn, orderRoutes } from '../routing.ts';
import type { OfferedModel, Route } from '../routing.ts';
import type { Availability } from '../upstreams/circuit.ts';
import type { PolicyName } from './policy-names.ts';

/** How often a route whose times are old is tried first to see how it is now: a share of the requests. */
const exploredShare = 1 / 20;

/** How much longer than the best one a route may take to be drawn beside it: a multiple of the best one's time. */
const nearFactor = 1.5;

/** A request that needs an order of its model's routes. */
export interface OrderTerms {
  readonly model: Pick<OfferedModel, 'id' | 'routes' | 'holdTokens'>;
  readonly request: Pick<TextRequest, 'turns' | 'maxOutputTokens' | 'promptCacheKey'>;
  readonly keyId: string;
  /** On the monotonic clock. */
  readonly nowMs: number;
  /** Returns numbers from 0 up to 1. */
  readonly random: () => number;
  readonly availability: (route: Route) => Availability;
}

/** The order in which a request tries its model's routes, each of them once. */
export function orderFor(policy: PolicyName, terms: OrderTerms): readonly Route[] {
  return terms.model.routes.length < 2 ? terms.model.routes : policies[policy](terms);
}

const policies: Readonly<Record<PolicyName, (terms: OrderTerms) => readonly Route[]>> = {
  order: ({ model, random }) => orderRoutes(model.routes, random),
  least_in_flight: orderByInFlight,
  fastest: orderByFirstText,
  cheapest: orderByCost,
  affinity: orderByAffinity,
};

/**
 * The fewest requests in progress first, for its weight. A route that failed just now comes last: it answers sooner than
 * those that work, and would get all requests.
 */
function orderByInFlight({ model, random, nowMs }: OrderTerms): readonly Route[] {
  return sortedBy(drawInTurn(model.routes, random), [(route) => failingRank(route, nowMs), loadOf]);
}

/** The requests in progress with one more, for the weight of the route. */
function loadOf({ measure, weight }: Route): number {
  return ((measure?.inFlight ?? 0) + 1) / (weight ?? 1);
}

/**
 * The better one of two by its expected first text, drawn from those near the best, then the others by theirs: if all
 * requests went to the best route, each new measure would move all of them at once. Routes that are not known are tried,
 * and failing ones come last.
 */
function orderByFirstText({ model, random, nowMs }: OrderTerms): readonly Route[] {
  const expected = ({ measure }: Route): number => measure?.expectedMs(nowMs) ?? Number.POSITIVE_INFINITY;
  const sorted = sortedBy(drawInTurn(model.routes, random), [
    (route) => failingRank(route, nowMs),
    expected,
    ({ measure }) => measure?.waiting ?? 0,
  ]);
  const working = sorted.filter((route) => failingRank(route, nowMs) === 0);
  const untried = working.find(({ measure }) => measure?.isUntried(nowMs));
  if (untried !== undefined) return firstOf(untried, sorted);
  const stale = working.find(({ measure }) => measure?.isStale(nowMs));
  if (stale !== undefined && random() < exploredShare) return firstOf(stale, sorted);
  const [best] = working;
  if (best === undefined) return sorted;
  const mostMs = expected(best) * nearFactor;
  const near = working.filter((route) => expected(route) <= mostMs);
  return firstOf(betterOfTwo(near, best, random), sorted);
}

/** Of two routes drawn at random the better one, which comes first in the list; of less than three it is the best. */
function betterOfTwo(sorted: readonly Route[], best: Route, random: () => number): Route {
  if (sorted.length < 3) return best;
  const one = Math.floor(random() * sorted.length);
  const other = (one + 1 + Math.floor(random() * (sorted.length - 1))) % sorted.length;
  return sorted[Math.min(one, other)] ?? best;
}

/** The least that the operator is expected to pay for the request first. */
function orderByCost({ model, request, random }: OrderTerms): readonly Route[] {
  const inputTokens = usualInputTokens(request.turns);
  const outputTokens = request.maxOutputTokens ?? model.holdTokens;
  const expected = ({ cost }: Route): number =>
    cost === null ? Number.POSITIVE_INFINITY : cost.input * inputTokens + cost.output * outputTokens;
  return sortedBy(drawInTurn(model.routes, random), [expected]);
}

function failingRank({ measure }: Route, nowMs: number): number {
  return measure?.isFailing(nowMs) === true ? 1 : 0;
}

/** Sorts by the first rank that differs, lowest first; equal routes keep their order. */
function sortedBy(routes: readonly Route[], ranks: readonly ((route: Route) => number)[]): readonly Route[] {
  const ranked = routes.map((route) => ({ route, ranks: ranks.map((rank) => rank(route)) }));
  return ranked
    .toSorted((one, other) => {
      for (const [at, rank] of one.ranks.entries()) {
        const against = other.ranks[at] ?? 0;
        if (rank !== against) return rank < against ? -1 : 1;
      }
      return 0;
    })
    .map(({ route }) => route);
}

function firstOf(first: Route, routes: readonly Route[]): readonly Route[] {
  return [first, ...routes.filter((route) => route !== first)];
}

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
function orderByAffinity(terms: OrderTerms): readonly Route[] {
  const head = headOf(terms);
  const order = sortedBy(terms.model.routes, [(route) => distanceOf(head, route)]);
  const first = firstWithRoom(order, terms);
  return first === undefined ? order : firstOf(first, order);
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

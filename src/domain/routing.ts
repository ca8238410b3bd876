import type { ModelPrice } from './pricing.ts';
import type { FinishReasonRule } from '../protocol/text.ts';
import type { Dialect, DialectQuirks } from '../protocol/upstream/dialect.ts';

/** What a client that leaves in the middle of an answer pays; `settlement.ts` has the table. */
export type OnDisconnect = 'estimate' | 'drain' | 'free';

/** Where models are: an upstream by its configured name, and how it is spoken to. */
export interface ModelSource {
  readonly upstream: string;
  readonly dialect: Dialect;
  readonly quirks: DialectQuirks;
  /** What its answers need at their end to count as whole. */
  readonly finishReason: FinishReasonRule;
  readonly onDisconnect: OnDisconnect;
  /** How long an answer may take there, from its request to its end, in milliseconds. */
  readonly totalMs: number;
}

/** One way to serve a model: where it is, and its name there. */
export interface Route extends ModelSource {
  readonly model: string;
  /** Its share among its neighbours that have one, too; `null` for a route that stands alone in the order. */
  readonly weight: number | null;
}

/** Where a request may go: the model that it names, and its routes in the order in which they are tried. */
export interface Destination {
  readonly model: OfferedModel;
  readonly routes: readonly Route[];
}

/** A model as the service offers it. */
export interface OfferedModel {
  readonly id: string;
  /** Seconds since 1970. */
  readonly createdAtSeconds: number;
  /** In the order in which they are tried; `orderRoutes` has what weights change of it. */
  readonly routes: readonly Route[];
  readonly price: ModelPrice;
  /** Output tokens to expect of a request that names no cap of its own. */
  readonly holdTokens: number;
}

/**
 * The order in which one request tries a model's routes: as they are listed, but neighbours that have a weight are
 * equals, of which each comes first as often as its weight says. `random` gives numbers from 0 up to 1.
 */
export function orderRoutes(routes: readonly Route[], random: () => number): readonly Route[] {
  const ordered: Route[] = [];
  let equals: Route[] = [];
  for (const route of routes) {
    if (route.weight !== null) {
      equals.push(route);
      continue;
    }
    ordered.push(...shuffle(equals, random), route);
    equals = [];
  }
  return [...ordered, ...shuffle(equals, random)];
}

/** Draws one after the other, each by its weight among those that are left. */
function shuffle(routes: readonly Route[], random: () => number): readonly Route[] {
  if (routes.length < 2) return routes;
  const weights = routes.map(({ weight }) => weight ?? 0);
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  const found = weights.findIndex((weight) => (left -= weight) < 0);
  const drawn = found === -1 ? routes.length - 1 : found;
  const first = routes[drawn];
  return first === undefined ? [] : [first, ...shuffle(routes.toSpliced(drawn, 1), random)];
}

import type { ModelPrice } from './pricing.ts';
import type { FinishReasonRule } from '../protocol/text.ts';
import type { Dialect, DialectQuirks } from '../protocol/upstream/dialect.ts';
import type { UpstreamSecrets } from '../protocol/upstream/words/sanitise.ts';
import type { CallTarget } from './diagnosis/call-target.ts';

/** The charging rule for a client that disconnects before the end of an answer; `settlement.ts` has the table. */
export type OnDisconnect = 'estimate' | 'drain' | 'free';

/** A source of models: an upstream by its configured name, and how it is called. */
export interface ModelSource {
  readonly upstream: string;
  /** The upstream's address and settings, for its operator. */
  readonly target: CallTarget;
  readonly dialect: Dialect;
  readonly quirks: DialectQuirks;
  /** What an answer needs at its end to count as complete. */
  readonly finishReason: FinishReasonRule;
  readonly onDisconnect: OnDisconnect;
  /** The deadline of an answer, from its request to its end, in milliseconds. */
  readonly totalMs: number;
  /** What the upstream's messages must not show of it; a function, because a key may change while the gateway runs. */
  readonly secrets: () => UpstreamSecrets;
}

/** One route to a model: its source, and its name there. */
export interface Route extends ModelSource {
  readonly model: string;
  /** The share among neighbouring routes with a weight; `null` for a route with a fixed place in the order. */
  readonly weight: number | null;
}

/** The creation time of a model for which none is known: the same at every start and in every instance. */
export const unknownCreation = 0;

/** A model that the service offers. */
export interface OfferedModel {
  readonly id: string;
  /** Seconds since 1970; `unknownCreation` if its upstream does not say when. */
  readonly createdAtSeconds: number;
  /** In the configured order; `orderRoutes` applies the weights. */
  readonly routes: readonly Route[];
  readonly price: ModelPrice;
  /** Output tokens to expect of a request without an output cap. */
  readonly holdTokens: number;
}

/**
 * The order in which one request tries a model's routes: as they are listed, except that neighbours with a weight are
 * shuffled, each coming first in proportion to its weight. `random` returns numbers from 0 up to 1.
 */
export function orderRoutes(routes: readonly Route[], random: () => number): readonly Route[] {
  if (routes.length < 2) return routes;
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

/** Draws routes one after the other, each by its weight among those that remain. */
function shuffle(routes: readonly Route[], random: () => number): readonly Route[] {
  if (routes.length < 2) return routes;
  const weights = routes.map(({ weight }) => weight ?? 0);
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  const found = weights.findIndex((weight) => (left -= weight) < 0);
  const drawn = found === -1 ? routes.length - 1 : found;
  const first = routes[drawn];
  return first === undefined ? [] : [first, ...shuffle(routes.toSpliced(drawn, 1), random)];
}

import type { FinishReasonRule } from '../protocol/text.ts';
import type { Dialect, DialectQuirks } from '../protocol/upstream/dialect.ts';
import type { UpstreamSecrets } from '../protocol/upstream/words/sanitise.ts';
import type { Refusal } from '../shared/errors.ts';
import type { CallTarget } from './diagnosis/call-target.ts';
import type { HiddenPrompt } from './money/hidden-prompt.ts';
import type { ChangingPrice } from './money/price-changes.ts';
import type { Price } from './money/pricing.ts';
import type { HedgePolicy } from './routing/hedging.ts';
import type { PolicyName } from './routing/policy-names.ts';
import type { RouteMeasure } from './routing/route-measure.ts';
import type { ShadowTerms } from './shadows/shadow-book.ts';

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
  /** The tag in which the text of its answers begins with thoughts; `null` for none. */
  readonly thoughtTag: string | null;
  /** Set if a complete answer without text counts as failed, so that the next route is tried. */
  readonly emptyFails?: true;
  readonly onDisconnect: OnDisconnect;
  /** The deadline of an answer, from its request to its end, in milliseconds. */
  readonly totalMs: number;
  /** The deadline of the first text of a stream, from its request, in milliseconds; absent without one. */
  readonly firstTextMs?: number;
  /** Set if the model thinks before its text: each of its thoughts puts that deadline off. */
  readonly thinks?: true;
  /** What the upstream's messages must not show of it; a function, because a key may change while the gateway runs. */
  readonly secrets: () => UpstreamSecrets;
}

/** One route to a model: its source, and its name there. */
export interface Route extends ModelSource {
  readonly model: string;
  /** The share among neighbouring routes with a weight; `null` for a route with a fixed place in the order. */
  readonly weight: number | null;
  /** How long after its start an attempt may fail and be followed by another one, in milliseconds; absent without a bound. */
  readonly retryWithinMs?: number;
  /** What the operator pays there for tokens, by which routes are ordered and nothing is charged; `null` if it is not known. */
  readonly cost: Pick<Price, 'input' | 'output'> | null;
  /** What its attempts show, shared by all routes to this model there; `null` if nothing needs it. */
  readonly measure: RouteMeasure | null;
  /** The prompt that it may add to questions; absent where nothing is known of it. */
  readonly hidden?: HiddenPrompt;
}

/** The creation time of a model for which none is known: the same at every start and in every instance. */
export const unknownCreation = 0;

/** A model that the service offers. */
export interface OfferedModel extends ChangingPrice {
  readonly id: string;
  /** Seconds since 1970; `unknownCreation` if its upstream does not say when. */
  readonly createdAtSeconds: number;
  /** In the configured order; `orderFor` has the order of a request. */
  readonly routes: readonly Route[];
  /** `null` for the configured order with its weights, without any measure. */
  readonly policy: PolicyName | null;
  /** Output tokens to expect of a request without an output cap. */
  readonly holdTokens: number;
  /** The most tokens that the list of prices says input and output have together; absent where it does not. */
  readonly contextTokens?: number;
  /** When a request is sent to a second route, too; absent where it never is. */
  readonly hedge?: HedgePolicy;
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
    ordered.push(...drawInTurn(equals, random), route);
    equals = [];
  }
  return [...ordered, ...drawInTurn(equals, random)];
}

/** All routes in a random order: each comes first in proportion to its weight, which is 1 without one. */
export function drawInTurn(routes: readonly Route[], random: () => number): readonly Route[] {
  if (routes.length < 2) return routes;
  const weights = routes.map(({ weight }) => weight ?? 1);
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  const found = weights.findIndex((weight) => (left -= weight) < 0);
  const drawn = found === -1 ? routes.length - 1 : found;
  const first = routes[drawn];
  return first === undefined ? [] : [first, ...drawInTurn(routes.toSpliced(drawn, 1), random)];
}

/** Where copies of a model's requests go, and how the upstream is called. */
export interface ShadowRoute extends ShadowTerms {
  readonly route: Route;
  /** Output tokens to expect of an answer. */
  readonly holdTokens: number;
}

/** The offered models, from the config or discovered from an upstream. */
export interface ModelCatalogue {
  find(id: string): Promise<OfferedModel | null | Refusal>;
  /** Whether `find` has the model at hand, so that it waits for no upstream. */
  knows(id: string): boolean;
  list(): Promise<readonly OfferedModel[] | Refusal>;
}

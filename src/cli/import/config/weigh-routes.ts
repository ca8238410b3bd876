import type { Taken } from './find-price.ts';
import type { Target } from './find-target.ts';
import type { Notes } from './notes.ts';
import { numberOf, textOf } from './read-litellm.ts';

/** A route of a model as it is written, and why it is there. */
export interface Route {
  readonly upstream: string;
  readonly model: string;
  readonly weight?: number;
  readonly isFallback: boolean;
}

/** Strategies of LiteLLM's router, by what orders routes here. */
export const policies: ReadonlyMap<string, string> = new Map([
  ['least-busy', 'least_in_flight'],
  ['latency-based-routing', 'fastest'],
  ['usage-based-routing', 'least_in_flight'],
  ['usage-based-routing-v2', 'least_in_flight'],
]);

/** The deployments of a model, those of its fallbacks, and how LiteLLM chooses between the former. */
interface Group {
  readonly taken: readonly Taken[];
  readonly behind: readonly Taken[];
  readonly strategy: string;
  /** The name of the upstream of a target. */
  readonly nameOf: (target: Target) => string;
}

/** The routes of a model, in the order in which they are tried, with the weights by which LiteLLM draws the first one. */
export function weigh(
  { taken, behind, strategy, nameOf }: Group,
  notes: Notes,
): { readonly policy: string | null; readonly routes: readonly Route[] } {
  const name = taken[0]?.deployment.name;
  const orders = taken.map(
    ({ deployment }) => numberOf(deployment.params, 'order') ?? Number.POSITIVE_INFINITY,
  );
  const least = Math.min(...orders);
  const first = taken.filter((_one, index) => orders[index] === least);
  const later = taken
    .map((one, index) => ({ one, order: orders[index] ?? 0 }))
    .filter(({ order }) => order !== least)
    .toSorted((one, other) => one.order - other.order)
    .map(({ one }) => one);
  const routeTo = (target: Target) => ({ upstream: nameOf(target), model: target.model });
  const keyOf = (target: Target): string => JSON.stringify(routeTo(target));
  const isShared = new Set(first.map(({ target }) => keyOf(target))).size > 1;
  const wanted = isShared ? (policies.get(strategy) ?? null) : null;
  const policy = later.length + behind.length === 0 ? wanted : null;
  if (wanted !== policy)
    notes.changed(
      'router_settings.routing_strategy',
      'left out where a model has fallbacks: it would send requests there, too',
      name,
    );
  const weights = isShared && policy === null ? weightsOf(first) : [];
  const routes = new Map<string, Route>();
  const drawn = first.map(({ target }, index) => ({ target, share: weights[index] ?? 0 }));
  // Routes without a share come behind those with one: between them, they would divide those into two groups.
  for (const { target, share } of drawn.toSorted(
    (one, other) => Number(one.share === 0) - Number(other.share === 0),
  )) {
    const weight = share + (routes.get(keyOf(target))?.weight ?? 0);
    routes.set(keyOf(target), { ...routeTo(target), ...(weight === 0 ? {} : { weight }), isFallback: false });
  }
  for (const { target } of later)
    if (!routes.has(keyOf(target))) routes.set(keyOf(target), { ...routeTo(target), isFallback: false });
  for (const { target } of behind)
    if (!routes.has(keyOf(target))) routes.set(keyOf(target), { ...routeTo(target), isFallback: true });
  return { policy, routes: [...routes.values()] };
}

/** The shares of deployments as LiteLLM draws them: by the first of these settings that the first one has, or equally. */
function weightsOf(taken: readonly Taken[]): readonly number[] {
  const setting = ['weight', 'rpm', 'tpm'].find(
    (one) => textOf(taken[0]?.deployment.params ?? new Map(), one) !== null,
  );
  const weights = taken.map(({ deployment: { params } }) =>
    setting === undefined ? 1 : Math.round((numberOf(params, setting) ?? 0) * 1_000),
  );
  const divisor = weights.reduce(greatestCommonDivisor, 0) || 1;
  return weights.map((weight) => weight / divisor);
}

function greatestCommonDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestCommonDivisor(other, one % other);
}

import type { Taken } from './find-price.ts';
import type { Target } from './find-target.ts';
import type { Notes } from './notes.ts';
import { numberOf } from './read-litellm.ts';

/** A route of a model as it is written, and why it is there. */
export interface Route {
  readonly upstream: string;
  readonly model: string;
  readonly weight?: number;
  readonly isFallback: boolean;
}

/** Strategies of LiteLLM's router, by what orders routes here; `undefined` for weights. */
export const policies: ReadonlyMap<string, string | undefined> = new Map([
  ['simple-shuffle', undefined],
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
  const byOrder = Map.groupBy(
    taken,
    ({ deployment: { params } }) => numberOf(params, 'order', 0) ?? Number.POSITIVE_INFINITY,
  );
  const [first = [], ...later] = [...byOrder]
    .toSorted(([one], [other]) => one - other)
    .map(([, alike]) => alike);
  const routeTo = ({ target }: Taken) => ({ upstream: nameOf(target), model: target.model });
  const keyOf = (one: Taken): string => JSON.stringify(routeTo(one));
  const isShared = new Set(first.map(keyOf)).size > 1;
  const wanted = isShared ? (policies.get(strategy) ?? null) : null;
  const policy = later.length + behind.length === 0 ? wanted : null;
  if (wanted !== policy)
    notes.changed(
      'router_settings.routing_strategy',
      'left out where a model has fallbacks: it would send requests there, too',
      taken[0]?.deployment.name,
    );
  const routes = new Map<string, Route>();
  const add = (one: Taken, isFallback: boolean, share = 0): void => {
    const known = routes.get(keyOf(one));
    const weight = share + (known?.weight ?? 0);
    const more = { ...(weight === 0 ? {} : { weight }), isFallback: known?.isFallback ?? isFallback };
    routes.set(keyOf(one), { ...routeTo(one), ...more });
  };
  const weights = isShared && policy === null ? weightsOf(first) : [];
  const drawn = first.map((one, index) => ({ one, share: weights[index] ?? 0 }));
  // Routes without a share come behind those with one: between them, they would divide those into two groups.
  for (const isLast of [false, true])
    for (const { one, share } of drawn) if ((share === 0) === isLast) add(one, false, share);
  for (const one of later.flat()) add(one, false);
  for (const one of behind) add(one, true);
  return { policy, routes: [...routes.values()] };
}

/** The largest share that is told from others: a weight is a whole number without an exponent. */
const maxShare = 1_000_000_000;

/** The shares of deployments as LiteLLM draws them: by the first of these settings that the first one has, or equally. */
function weightsOf(taken: readonly Taken[]): readonly number[] {
  const { params: ofFirst } = taken[0]?.deployment ?? { params: new Map() };
  const setting = ['weight', 'rpm', 'tpm'].find((one) => numberOf(ofFirst, one, 0) !== null);
  const weights = taken.map(({ deployment: { params } }) =>
    setting === undefined ? 1 : Math.round(Math.min(numberOf(params, setting) ?? 0, maxShare) * 1_000),
  );
  const divisor = weights.reduce(greatestCommonDivisor, 0) || 1;
  return weights.map((weight) => weight / divisor);
}

function greatestCommonDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestCommonDivisor(other, one % other);
}

import { hedgePolicyOf } from '../../config/schema/hedge-schema.ts';
import { isDiscovered } from '../../config/schema/schema.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { ModelCatalogue, OfferedModel, Route, ShadowRoute } from '../../domain/routing.ts';
import type { HiddenPrompt } from '../../domain/money/hidden-prompt.ts';
import type { ChangingPrice } from '../../domain/money/price-changes.ts';
import { unknownCreation } from '../../domain/routing.ts';
import type { UpstreamHealth } from '../../domain/upstreams/upstream-health.ts';
import { createModelDiscovery } from '../../models/model-discovery.ts';
import type { DiscoveryPorts, FetchedModelList, ModelDiscovery } from '../../models/model-discovery.ts';
import { createModelList } from '../../models/model-list.ts';
import type { ConfiguredModel, KeptModels } from './kept-models.ts';
import { priceOf, servedAt } from './prices.ts';
import { sourceOf } from './upstreams.ts';
import type { SourceDetails } from './upstreams.ts';

/** The models of one config. */
export interface Models {
  readonly catalogue: ModelCatalogue;
  /** The models on offer; of a discovered catalogue, those of the last good list. */
  readonly offered: () => Iterable<OfferedModel>;
  /** The last good list of a discovered catalogue; `null` for a configured one. */
  readonly lastGood: () => ModelDiscovery['lastGood'];
  /** What is wrong with the latest list of a discovered catalogue, and what to do; `null` if nothing is known to be. */
  readonly problem: () => string | null;
  /** Fetches the list of a discovered catalogue if it is not known yet; `null` for a configured one, and after `close`. */
  fetchList(): Promise<FetchedModelList | null>;
  /** Ends a fetch under way. */
  close(): void;
}

/** The catalogue of the config: its own models, or those that one of its upstreams lists. */
export function composeModels(
  { models, upstreams: configs }: Config,
  ports: DiscoveryPorts,
  details: SourceDetails,
  { lastGood, ...known }: KeptModels,
): Models {
  if (isDiscovered(models)) {
    const { from, allow, rename, holdTokens, thinks } = models;
    const source = { ...sourceOf(from, configs, details), ...whereSet('thinks', thinks) };
    const listPath = source.dialect.modelsPath;
    const hiddenOf = (name: string): HiddenPrompt => known.hiddenOf(from, name);
    const offer = {
      source,
      listPath,
      allow,
      rename,
      holdTokens,
      hiddenOf,
      ...onlyPrice(priceOf(models.price, null)),
    };
    const catalogue = createModelDiscovery(offer, ports, lastGood);
    const offered = (): Iterable<OfferedModel> => catalogue.lastGood?.values() ?? [];
    return {
      catalogue,
      offered,
      lastGood: () => catalogue.lastGood,
      problem: () => catalogue.problem,
      fetchList: () => catalogue.fetchList(),
      close: () => catalogue.close(),
    };
  }
  const offered = Object.entries(models).map(([id, configured]) => {
    const { policy = null, holdTokens } = configured;
    const routes = routesOf(configured, configs, details, known);
    const hedge = configured.hedge === undefined ? undefined : hedgePolicyOf(configured.hedge);
    const price = onlyPrice(priceOf(configured.price, servedAt(configured.routes[0], configs)));
    const contextTokens = contextOf(configured, configs);
    const model = { id, createdAtSeconds: unknownCreation, routes, policy, holdTokens, ...price };
    return Object.assign(model, whereSet('hedge', hedge), whereSet('contextTokens', contextTokens));
  });
  return {
    catalogue: createModelList(offered),
    offered: () => offered,
    lastGood: () => null,
    problem: () => null,
    fetchList: async () => null,
    close: () => {},
  };
}

/** The routes to which copies of requests are sent. */
export function shadowRoutesOf(
  { models, upstreams }: Config,
  details: SourceDetails,
): readonly ShadowRoute[] {
  if (isDiscovered(models)) return [];
  return Object.entries(models).flatMap(([model, { shadow, holdTokens }]) => {
    if (shadow === undefined) return [];
    const { route, share, budgetPerDay = null, maxInFlight } = shadow;
    return [
      {
        model,
        route: { ...sourceOf(route.upstream, upstreams, details), ...route, ...placeless },
        share,
        ...onlyPrice(priceOf(shadow.price, servedAt(route, upstreams))),
        budgetNanos: budgetPerDay,
        maxInFlight,
        holdTokens,
      },
    ];
  });
}

/** The largest context that the list has for the routes of a model with its prices; absent where one is not known. */
function contextOf({ price, routes }: ConfiguredModel, upstreams: Config['upstreams']): number | undefined {
  // A price by name says nothing of the model that is served.
  if (price !== 'list') return undefined;
  const all = routes.map((route) => priceOf(price, servedAt(route, upstreams)).contextTokens);
  const known = all.filter((tokens) => tokens !== undefined);
  return known.length === all.length ? Math.max(...known) : undefined;
}

/** Without what else the list has of a model. */
function onlyPrice({ price, priceChanges }: ChangingPrice): ChangingPrice {
  return priceChanges === undefined ? { price } : { price, priceChanges };
}

/** A shadow route has no place among the routes that requests are tried at, and is not measured with them. */
const placeless = { weight: null, cost: null, measure: null } as const;

/**
 * Forgets the models that no route leads to any more: an alert about the circuit of one would never end. Nothing is forgotten
 * before a list of models was fetched.
 */
export function forgetUnserved(models: Models, upstreams: readonly string[], health: UpstreamHealth): void {
  const routes = [...models.offered()].flatMap((offered) => offered.routes);
  if (routes.length === 0) return;
  for (const name of upstreams) {
    const served = routes.filter(({ upstream }) => upstream === name).map(({ model }) => model);
    health.keepModels(name, new Set(served));
  }
}

function routesOf(
  configured: ConfiguredModel,
  upstreams: Config['upstreams'],
  details: SourceDetails,
  { measureOf, hiddenOf }: Omit<KeptModels, 'lastGood'>,
): readonly Route[] {
  return configured.routes.map(({ upstream, model, weight = null, cost = null, retryWithin }) => {
    const measure = measureOf(configured, upstream, model);
    return Object.assign(
      sourceOf(upstream, upstreams, details),
      { model, weight, cost, measure, hidden: hiddenOf(upstream, model) },
      whereSet('thinks', configured.thinks),
      whereSet('retryWithinMs', retryWithin),
    );
  });
}

/** An object with a field, or an empty one where its value is not set. */
function whereSet<Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): { readonly [Field in Name]?: Value } {
  return value === undefined ? {} : ({ [name]: value } as { [Field in Name]: Value });
}

import { isDeepStrictEqual } from 'node:util';
import type { ChangingPrice } from '../domain/money/price-changes.ts';
import { findListPrice, findPriceAt } from '../prices/find-price.ts';
import { describeAge } from '../prices/open-price-list.ts';
import { isPlainObject } from '../shared/parse-json.ts';
import type { Problem } from './problem.ts';
import { isListed } from './schema/price-schema.ts';
import { isDiscovered } from './schema/schema.ts';
import type { Config } from './schema/schema.ts';

/** The parts of an unchecked config that the prices of the list are found by; any of them may have the wrong type. */
interface UncheckedConfig {
  readonly upstreams?: unknown;
  readonly models?: unknown;
}

/** A price, the routes whose models may have it in the list, and its place in the config. */
interface PlacedPrice {
  readonly price: unknown;
  readonly routes: readonly unknown[];
  readonly path: readonly string[];
}

/** The problems of prices that are to be those of the public list: it has none, or routes have different ones. */
export function unlistedPrices(input: unknown): readonly Problem[] {
  const { upstreams, models } = (input ?? {}) as UncheckedConfig;
  if (!isPlainObject(models)) return [];
  const { from, price } = models;
  const prices =
    typeof from === 'string'
      ? [{ price, routes: [], path: ['models', 'price'] }]
      : Object.entries(models).flatMap(([name, model]) => pricesOf(model, ['models', name]));
  return prices.flatMap((placed) => problemsOf(placed, upstreams));
}

/** The prices of a model, and of its shadow. */
function pricesOf(model: unknown, path: readonly string[]): readonly PlacedPrice[] {
  if (!isPlainObject(model)) return [];
  const { price, routes, shadow } = model;
  const { price: ofShadow, route } = isPlainObject(shadow) ? shadow : {};
  return [
    { price, routes: Array.isArray(routes) ? routes : [], path: [...path, 'price'] },
    { price: ofShadow, routes: [route], path: [...path, 'shadow', 'price'] },
  ];
}

function problemsOf({ price, routes, path }: PlacedPrice, upstreams: unknown): readonly Problem[] {
  if (isPlainObject(price) && typeof price['list'] === 'string') {
    const found = findListPrice(price['list']);
    return typeof found === 'string' ? [{ path: [...path, 'list'], message: found }] : [];
  }
  if (price !== 'list') return [];
  const found = routes.map((route) => priceOfRoute(route, upstreams));
  const unknown = found.find((one) => typeof one === 'string');
  if (typeof unknown === 'string') return [{ path, message: unknown }];
  const [first, ...others] = found.flatMap((one) =>
    one === null || typeof one === 'string' ? [] : [[one.price, one.priceChanges]],
  );
  const message =
    'the routes have different prices in the list: name the one that clients pay, such as { list: openai/gpt-4o-mini }';
  return others.every((other) => isDeepStrictEqual(other, first)) ? [] : [{ path, message }];
}

/** The price of what a route leads to, or why there is none; `null` where the route has faults of its own. */
function priceOfRoute(route: unknown, upstreams: unknown): ChangingPrice | string | null {
  if (!isPlainObject(route) || !isPlainObject(upstreams)) return null;
  const { upstream, model } = route;
  const target = typeof upstream === 'string' ? upstreams[upstream] : null;
  const url = isPlainObject(target) ? target['url'] : null;
  // As the upstream itself is read: without a URL, it has a fault of its own.
  const read = typeof url === 'string' ? URL.parse(url) : null;
  return read !== null && typeof model === 'string' ? findPriceAt(read.href, model) : null;
}

/** What is said of a list that is old, where a config has prices of it; `null` for any other. */
export function describeOldPrices(config: Config, nowMs: number): string | null {
  return usesPriceList(config) ? describeAge(nowMs) : null;
}

/** Whether a config has a price of the list. */
function usesPriceList({ models }: Config): boolean {
  const prices = isDiscovered(models)
    ? [models.price]
    : Object.values(models).flatMap(({ price, shadow }) => [price, shadow?.price]);
  return prices.some((price) => price !== undefined && isListed(price));
}

import { isListed } from '../../config/schema/price-schema.ts';
import type { ListedPrice } from '../../config/schema/price-schema.ts';
import { isDiscovered } from '../../config/schema/schema.ts';
import type { Config } from '../../config/schema/schema.ts';
import { free } from '../../domain/money/pricing.ts';
import type { ModelPrice } from '../../domain/money/pricing.ts';
import { findListPrice, findPriceAt } from '../../prices/find-price.ts';
import { once, readFactor } from '../../prices/list-price.ts';
import type { Factor, ListedTerms } from '../../prices/list-price.ts';

/** Where a model with the price of the list is served: a checked config has one there. */
interface Served {
  readonly url: string;
  readonly model: string;
}

/** The price of a model by its config, in which a model without one is free. */
export function priceOf(
  configured: ListedPrice | ModelPrice | undefined,
  served: Served | null,
): ListedTerms {
  const found = findPrice(configured, served);
  if (typeof found === 'string') throw new Error(found);
  return found;
}

/** The same; or why the list has none. */
function findPrice(
  configured: ListedPrice | ModelPrice | undefined,
  served: Served | null,
): ListedTerms | string {
  if (configured === undefined) return { price: free };
  if (!isListed(configured)) return { price: configured };
  if (configured === 'list') return findPriceAt(served?.url ?? '', served?.model ?? '');
  return findListPrice(configured.list, factorOf(configured.times));
}

/** Where a route leads, as the list of prices knows it; `null` without a route. */
export function servedAt(
  route: { readonly upstream: string; readonly model: string } | undefined,
  upstreams: Config['upstreams'],
): Served | null {
  const url = upstreams[route?.upstream ?? '']?.url.href;
  return route === undefined || url === undefined ? null : { url, model: route.model };
}

/**
 * What the list has today of the models of a config whose prices are those of the list, or why it has none, by the models' names;
 * of a config that offers what an upstream lists, by the name `*`.
 */
export function findListedPrices({ models, upstreams }: Config): ReadonlyMap<string, ListedTerms | string> {
  const all = isDiscovered(models) ? { '*': { price: models.price, routes: [] } } : models;
  return new Map(
    Object.entries(all).flatMap(([name, { price, routes }]) =>
      price === undefined || !isListed(price)
        ? []
        : [[name, findPrice(price, servedAt(routes[0], upstreams))] as const],
    ),
  );
}

/** A checked config has a factor that can be read. */
function factorOf(times: string | undefined): Factor {
  const factor = times === undefined ? once : readFactor(times);
  if (factor === null) throw new Error(`a price can't be multiplied by ${times}`);
  return factor;
}

import { isListed } from '../../config/schema/price-schema.ts';
import type { ListedPrice } from '../../config/schema/price-schema.ts';
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
  if (configured === undefined) return { price: free };
  if (!isListed(configured)) return { price: configured };
  const found =
    configured === 'list'
      ? findPriceAt(served?.url ?? '', served?.model ?? '')
      : findListPrice(configured.list, factorOf(configured.times));
  if (typeof found === 'string') throw new Error(found);
  return found;
}

/** A checked config has a factor that can be read. */
function factorOf(times: string | undefined): Factor {
  const factor = times === undefined ? once : readFactor(times);
  if (factor === null) throw new Error(`a price can't be multiplied by ${times}`);
  return factor;
}

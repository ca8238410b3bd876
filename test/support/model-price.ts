import type { ModelPrice } from '../../src/domain/money/pricing.ts';

/** A price in nano-USD per million tokens; cached and cache-write input cost as much as plain input by default. */
export function modelPrice(price: Partial<ModelPrice> & { readonly input: number }): ModelPrice {
  return { cachedInput: price.input, cacheWrite: price.input, output: 0, request: 0, above: null, ...price };
}

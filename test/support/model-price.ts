import type { ModelPrice } from '../../src/domain/pricing.ts';

/** A price in nano-USD per million tokens whose other kinds of input cost as much as plain input, unless it says so. */
export function modelPrice(price: Partial<ModelPrice> & { readonly input: number }): ModelPrice {
  return { cachedInput: price.input, cacheWrite: price.input, output: 0, request: 0, above: null, ...price };
}

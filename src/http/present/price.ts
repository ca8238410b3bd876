import type { ModelPrice, Price } from '../../domain/money/pricing.ts';
import { formatUsd } from '../../shared/money.ts';

/** A model's price, in USD as decimal strings. */
export function presentModelPrice({ above, ...price }: ModelPrice) {
  return {
    ...presentPrice(price),
    above: above === null ? null : { input_tokens: above.inputTokens, ...presentPrice(above) },
  };
}

/** USD per million tokens of each kind, and per request. */
export function presentPrice({ input, cachedInput, cacheWrite, output, request }: Price) {
  return {
    input: formatUsd(input),
    cached_input: formatUsd(cachedInput),
    cache_write: formatUsd(cacheWrite),
    output: formatUsd(output),
    request: formatUsd(request),
  };
}

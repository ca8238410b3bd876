import { z } from 'zod';
import type { Price } from '../domain/pricing.ts';
import { maxNanos } from '../shared/money.ts';
import { usd } from '../shared/schema-values.ts';
import { wholeNumber } from './values.ts';

/** The default price of writes to a provider's cache, as a multiple of the input price: as Anthropic bills. */
const cacheWriteFactor = 1.25;

const tokenPrices = { input: usd, cachedInput: usd.optional(), cacheWrite: usd.optional(), output: usd };

/** The prices of a million tokens, by kind, and those for requests with more input than a threshold. */
export const price = z
  .strictObject({
    ...tokenPrices,
    above: z.strictObject({ inputTokens: wholeNumber(1), ...tokenPrices }).optional(),
  })
  .superRefine(({ above, ...base }, context) => {
    // Left out above the threshold, its default is the price of other input there: many times the price below it.
    for (const kind of ['cachedInput', 'cacheWrite'] as const)
      if (above !== undefined && base[kind] !== undefined && above[kind] === undefined)
        context.addIssue({
          code: 'custom',
          path: ['above', kind],
          message: 'expected a price above the threshold, too, because there is one below it',
        });
  })
  .transform(({ above, ...base }) => ({
    ...fillIn(base),
    above: above === undefined ? null : { inputTokens: above.inputTokens, ...fillIn(above) },
  }));

/** Fills in default prices: cached input costs as much as other input, and writing to the cache a quarter more. */
function fillIn({ input, cachedInput, cacheWrite, output }: TokenPrices): Price {
  return {
    input,
    cachedInput: cachedInput ?? input,
    cacheWrite: cacheWrite ?? Math.min(maxNanos, Math.ceil(input * cacheWriteFactor)),
    output,
    request: 0,
  };
}

interface TokenPrices {
  readonly input: number;
  readonly cachedInput?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly output: number;
}

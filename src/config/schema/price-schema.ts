import { z } from 'zod';
import type { ModelPrice, Price } from '../../domain/money/pricing.ts';
import { readFactor } from '../../prices/list-price.ts';
import { maxNanos } from '../../shared/money.ts';
import { maxModelNameLength, storedText, usd } from '../../shared/schema-values.ts';
import { wholeNumber } from './values.ts';

/** The default price of writes to a provider's cache, as a multiple of the input price: as Anthropic bills. */
const cacheWriteFactor = 1.25;

const tokenPrices = {
  input: usd.meta({ description: 'USD per million input tokens.', examples: ['0.15'] }),
  cachedInput: usd.optional().meta({
    description: "USD per million input tokens read from the provider's cache; default: `input`.",
    examples: ['0.075'],
  }),
  cacheWrite: usd.optional().meta({
    description: `USD per million input tokens written to the provider's cache; default: \`input\` × ${cacheWriteFactor}.`,
    examples: ['0.1875'],
  }),
  output: usd.meta({ description: 'USD per million output tokens.', examples: ['0.60'] }),
};

/** The prices for requests with more input than a threshold. */
const above = z.strictObject({
  inputTokens: wholeNumber(1).meta({
    description: 'The threshold: requests with more input tokens are billed entirely by these prices.',
    examples: [200_000],
  }),
  ...tokenPrices,
});

/** The prices of a million tokens, by kind, and those for requests with more input than a threshold. */
const writtenPrice = z
  .strictObject({
    ...tokenPrices,
    above: above.optional().describe('Other prices for requests with much input; default: none.'),
  })
  .superRefine(({ above: line, ...base }, context) => {
    // Left out above the threshold, its default is the price of other input there: many times the price below it.
    for (const kind of ['cachedInput', 'cacheWrite'] as const)
      if (line !== undefined && base[kind] !== undefined && line[kind] === undefined)
        context.addIssue({
          code: 'custom',
          path: ['above', kind],
          message: 'expected a price above the threshold, too, because there is one below it',
        });
  })
  .transform(({ above: line, ...base }) => ({
    ...fillIn(base),
    above: line === undefined ? null : { inputTokens: line.inputTokens, ...fillIn(line) },
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

/** The price of the public list: of what the route leads to, or of a name. */
const listed = z.literal('list', {
  error: 'expected "list", or prices such as { input: "0.15", output: "0.60" }',
});
const listedByName = z.strictObject({
  list: storedText
    .min(1)
    .max(maxModelNameLength)
    .meta({
      description:
        'A provider and its name of a model in the public list of prices, as `textgate prices` shows them.',
      examples: ['openai/gpt-4o-mini'],
    }),
  times: z
    .string()
    .refine((text) => readFactor(text) !== null, {
      message:
        'expected a number above 0 and at most 1000, with up to 9 digits after the point, such as "1.2"',
    })
    .optional()
    .meta({
      description: 'What each price of the list is multiplied by; default: 1.',
      examples: ['1.2'],
    }),
});

/** A price of the public list. */
export type ListedPrice = z.output<typeof listed> | z.output<typeof listedByName>;

/** A price in any of its forms. */
export const price = z.union([listed, listedByName, writtenPrice]);

/** The same where there is no route whose model could be looked up: all models of an upstream have one price. */
export const priceOfAll = z.union([listedByName, writtenPrice]);

/** Whether a price is one of the list. */
export function isListed(configured: ListedPrice | ModelPrice): configured is ListedPrice {
  return configured === 'list' || (configured as { readonly list?: unknown }).list !== undefined;
}

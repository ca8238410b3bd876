import { z } from 'zod';
import type { Price } from '../../domain/money/pricing.ts';
import { maxNanos } from '../../shared/money.ts';
import { usd, storedText } from '../../shared/schema-values.ts';
import { wholeNumber, positiveDuration } from './values.ts';

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
export const price = z
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

const routeCost = z.strictObject({
  input: usd.meta({ description: 'USD per million input tokens.', examples: ['0.10'] }),
  output: usd.meta({ description: 'USD per million output tokens.', examples: ['0.40'] }),
});

/** Where a model is served: an upstream, and the model's name there. */
export const routeTarget = z.strictObject({
  upstream: z.string().meta({ description: 'The name of an upstream of this config.', examples: ['local'] }),
  model: storedText
    .min(1)
    .meta({ description: "The upstream's name of the model.", examples: ['qwen3-0.6b'] }),
});

/** A route of a model, with its share and what it costs. */
export const route = routeTarget
  .extend({
    weight: wholeNumber(1)
      .optional()
      .meta({
        description:
          'The share of the requests that this route gets among adjacent routes with weights; default: none.',
        examples: [3],
      }),
    retryWithin: positiveDuration.optional().meta({
      description:
        'How long after its start an attempt here may fail and be followed by another one; default: not limited.',
      examples: ['5s'],
    }),
    cost: routeCost.optional().meta({
      description:
        'What the operator pays there, in USD per million tokens: `policy: cheapest` orders by it, and no client pays it.',
      examples: [{ input: '0.10', output: '0.40' }],
    }),
  })
  .meta({ examples: [{ upstream: 'local', model: 'qwen3-0.6b' }] });

import { z } from 'zod';
import { usd, storedText } from '../../shared/schema-values.ts';
import { wholeNumber, positiveDuration } from './values.ts';

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

import { z } from 'zod';
import { usd } from '../../shared/schema-values.ts';
import { price } from './price-schema.ts';
import { routeTarget } from './route-schema.ts';
import { onlyTrue, share, wholeNumber } from './values.ts';

/** The most shadows of a model that may be in progress: each has its prompt in memory. */
const maxShadowsInFlight = 64;

/** Where a share of a model's requests is also sent. */
export const shadow = z
  .strictObject({
    route: routeTarget.meta({
      description: 'Where the copies go.',
      examples: [{ upstream: 'local', model: 'qwen3-4b' }],
    }),
    share: share.meta({ description: 'The share of the requests.', examples: ['5%'] }),
    price: price.optional().meta({
      description:
        'What the route costs, in USD per million tokens: it counts for the budget and is compared, and no key pays it. A shadow has either a price or `free: true`.',
      examples: [{ input: '0.10', output: '0.40' }],
    }),
    free: onlyTrue.optional().meta({ description: 'The route costs nothing.', examples: [true] }),
    budgetPerDay: usd.optional().meta({
      description:
        'USD that may be spent on it in a day (UTC), by each process: with a price, it has to be set.',
      examples: ['10.00'],
    }),
    maxInFlight: wholeNumber(1, maxShadowsInFlight)
      .default(4)
      .describe('How many of them may be in progress at a time; further ones are left out.'),
  })
  .superRefine(({ price: set, free, budgetPerDay }, context) => {
    if ((set === undefined) === (free === undefined))
      context.addIssue({ code: 'custom', message: 'expected either a price or free: true' });
    // Copies are paid for beside the requests themselves: without a bound, a share of 100% doubles what a provider bills.
    else if ((set === undefined) !== (budgetPerDay === undefined))
      context.addIssue({
        code: 'custom',
        path: ['budgetPerDay'],
        message:
          set === undefined
            ? 'a free route needs no budget: leave it out, or set a price'
            : 'expected an amount of USD, because the route has a price',
      });
  })
  .meta({
    examples: [{ route: { upstream: 'local', model: 'qwen3-4b' }, share: '5%', free: true }],
  });

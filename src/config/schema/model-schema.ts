import { z } from 'zod';
import { usd } from '../../shared/schema-values.ts';
import { hedge } from './hedge-schema.ts';
import { price, priceOfAll } from './price-schema.ts';
import { route } from './route-schema.ts';
import { shadow } from './shadow-schema.ts';
import { chosenName, namePattern, onlyTrue, wholeNumber } from './values.ts';
import { policyNames } from '../../domain/routing/policy-names.ts';

/** How many output tokens the hold of a request without a limit of its own covers. */
const defaultHoldTokens = 1_024;

/** The gateway's own paths, which can't be passthrough paths. */
const ownPaths = /^\/(v1\/(chat\/completions|responses|models|key|statement-keys)(\/|$)|(healthz|readyz)$)/;

const holdTokens = wholeNumber(1)
  .default(defaultHoldTokens)
  .describe(
    'The output tokens that the hold of a request covers if the request has no cap. With `limits.balanceMode: strict`, it is sent as the cap: a longer answer ends as `length`.',
  );

const thinks = onlyTrue.optional().meta({
  description:
    'The model thinks before its text: each thought that it streams begins the time of `timeouts.firstText` anew.',
  examples: [true],
});

const model = z
  .strictObject({
    routes: z
      .array(route)
      .min(1)
      .meta({
        description: 'Where the model is served; tried in this order, unless `policy` names another one.',
        examples: [[{ upstream: 'local', model: 'qwen3-0.6b' }]],
      }),
    policy: z
      .enum(policyNames)
      .optional()
      .meta({
        description:
          'Which route a request tries first: `order` is that of the list; default: `order`, without measures.',
        examples: ['fastest'],
      }),
    price: price.optional().meta({
      description:
        'The price, in USD per million tokens, or `list` for the public price of the model at its provider. A model has either a price or `free: true`.',
      examples: [{ input: '0.15', output: '0.60' }],
    }),
    free: onlyTrue.optional().meta({ description: 'Requests cost nothing.', examples: [true] }),
    holdTokens,
    thinks,
    hedge: hedge.optional().meta({
      description:
        'Sends a request to a second route, too, if the first text of the first one is late: the first text wins; default: never.',
      examples: [{ after: 'p95', budget: '5%' }],
    }),
    shadow: shadow
      .optional()
      .describe(
        'A second upstream that gets a copy of a share of the requests; its answers are compared and dropped. Default: none.',
      ),
  })
  .refine(({ price: set, free }) => (set === undefined) !== (free === undefined), {
    message: 'expected either a price or free: true',
  })
  .refine(({ hedge: set, routes }) => set === undefined || routes.length > 1, {
    path: ['hedge'],
    message: 'a second request needs a second route: add one, or leave hedge out',
  })
  .superRefine(({ policy, routes }, context) => {
    if (policy !== 'cheapest') return;
    for (const [index, { cost }] of routes.entries())
      if (cost === undefined)
        context.addIssue({
          code: 'custom',
          path: ['routes', index, 'cost'],
          message: 'expected a cost, because the policy is cheapest',
        });
  })
  .meta({ examples: [{ routes: [{ upstream: 'local', model: 'qwen3-0.6b' }], free: true }] });

/** Models by name. */
export const models = z.record(chosenName, model);

/** `models: { from: <upstream> }`, which offers the models that the upstream lists. */
export const discoveredModels = z.strictObject({
  from: z
    .string()
    .meta({ description: 'The upstream whose list of models is offered.', examples: ['local'] }),
  allow: z
    .array(namePattern)
    .min(1)
    .default(['*'])
    .meta({
      description: "The models that are offered, by the upstream's names; one `*` matches any text.",
      examples: [['qwen*']],
    }),
  rename: z
    .record(namePattern, namePattern)
    .default({})
    .meta({
      description:
        "The upstream's names, each with the name that clients use; `*` stands for the same text in both.",
      examples: [{ 'org/*': '*' }],
    }),
  price: priceOfAll.optional().meta({
    description: 'The price of all these models, in USD per million tokens; default: they are free.',
    examples: [{ input: '0.15', output: '0.60' }],
  }),
  holdTokens,
  thinks,
});

/** A path whose requests go to an upstream unchanged. */
const passthroughPath = z
  .strictObject({
    path: z
      .string()
      .regex(
        /^(\/(?!\.\.?(\/|$))[A-Za-z0-9._~-]+)+$/,
        "expected a path such as /tokenize, without patterns and without '.' or '..' as a segment",
      )
      .refine((path) => !ownPaths.test(path), 'this path belongs to the gateway itself')
      .meta({
        description: 'The path here and at the upstream, directly below its host.',
        examples: ['/tokenize'],
      }),
    upstream: z
      .string()
      .meta({ description: 'The name of an upstream of this config.', examples: ['local'] }),
    price: z
      .strictObject({
        request: usd.meta({ description: 'USD per request.', examples: ['0.001'] }),
      })
      .optional()
      .meta({
        description:
          'The price. Without a price and without `free: true`, keys with a balance may not use the path.',
        examples: [{ request: '0.001' }],
      }),
    free: onlyTrue.optional().meta({ description: 'Requests cost nothing.', examples: [true] }),
  })
  .refine(({ price: set, free }) => set === undefined || free === undefined, {
    message: 'expected either a price or free: true',
  });

/** The paths that are passed on unchanged. */
export const passthroughPaths = z
  .array(passthroughPath)
  .refine(
    (paths) => new Set(paths.map(({ path }) => path)).size === paths.length,
    'expected each path only once',
  );

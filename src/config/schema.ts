import { z } from 'zod';
import {
  defaultCompatibility,
  samplingPolicies,
  unknownFieldPolicies,
} from '../protocol/contract/compatibility.ts';
import type { Price } from '../domain/pricing.ts';
import { maxNanos } from '../shared/money.ts';
import { minTokenLength } from './admin-token.ts';
import { isLinkLocal } from '../shared/link-local.ts';
import { duration, usd } from '../shared/schema-values.ts';
import {
  byteSize,
  headerName,
  headerValue,
  namePattern,
  port,
  upstreamUrl,
  wholeNumber,
  secret,
  positiveDuration,
} from './values.ts';

/** The default address of each listener. */
export const defaultHost = '127.0.0.1';
const defaultPort = 8080;
export const defaultAdminPort = 8081;

/** The admin token, as it goes into a Bearer header: blanks around it come from a mounted secret, blanks in it never match. */
const bearerToken = z
  .string()
  .trim()
  .min(minTokenLength)
  .regex(/^[\x21-\x7e]*$/, 'expected printable ASCII without blanks');

/** Output tokens to expect of a request that names no cap of its own. */
const defaultHoldTokens = 1_024;

/** What writing input to a provider's cache costs, in prices of plain input: as Anthropic and others bill it. */
const cacheWriteFactor = 1.25;

/** The paths that clients of the gateway know. */
const ownPaths = /^\/v1\/(chat\/completions|responses|models|key)(\/|$)/;

const storageUrl = z
  .string()
  .regex(/^sqlite:.+$/, 'expected sqlite: and a file, such as sqlite:data/textgate.db');

/** How often an upstream may be probed at the most: more would be a load of its own. */
const probeInterval = duration.refine((milliseconds) => milliseconds >= 1_000, 'expected 1s or more');

const upstream = z
  .strictObject({
    url: upstreamUrl,
    apiKey: secret.optional(),
    authHeader: headerName.optional(),
    headers: z.record(headerName, headerValue).default({}),
    allowLinkLocal: z.boolean().default(false),
    systemRole: z.enum(['system', 'developer']).default('system'),
    maxTokensField: z.enum(['max_tokens', 'max_completion_tokens']).default('max_tokens'),
    streamUsage: z.enum(['ask', 'given']).default('ask'),
    dialects: z
      .array(z.enum(['chat', 'responses', 'anthropic', 'gemini']))
      .min(1)
      .default(['chat']),
    finishReason: z.enum(['required', 'optional']).default('required'),
    onDisconnect: z.enum(['estimate', 'drain', 'free']).default('estimate'),
    probe: z
      .strictObject({
        path: z.string().startsWith('/').default('/models'),
        interval: probeInterval.prefault('10s'),
      })
      .optional(),
    timeouts: z
      .strictObject({
        connect: positiveDuration.prefault('5s'),
        firstByte: positiveDuration.prefault('120s'),
        idle: positiveDuration.prefault('60s'),
        total: positiveDuration.prefault('10m'),
      })
      .prefault({}),
  })
  .refine(({ url, allowLinkLocal }) => allowLinkLocal || !isLinkLocal(url.hostname), {
    path: ['url'],
    message:
      "a link-local address, where clouds keep a machine's credentials: set allowLinkLocal: true if it is meant",
  });

const tokenPrices = { input: usd, cachedInput: usd.optional(), cacheWrite: usd.optional(), output: usd };

/** What a million tokens cost, by the kind, and for requests with more input than some threshold. */
const price = z
  .strictObject({
    ...tokenPrices,
    above: z.strictObject({ inputTokens: wholeNumber(1), ...tokenPrices }).optional(),
  })
  .superRefine(({ above, ...base }, context) => {
    // Left out there, it would cost as much as other input above the threshold: many times the price that stands here.
    for (const kind of ['cachedInput', 'cacheWrite'] as const)
      if (above !== undefined && base[kind] !== undefined && above[kind] === undefined)
        context.addIssue({
          code: 'custom',
          path: ['above', kind],
          message: 'has a price below the threshold, so it needs one above it',
        });
  })
  .transform(({ above, ...base }) => ({
    ...fillIn(base),
    above: above === undefined ? null : { inputTokens: above.inputTokens, ...fillIn(above) },
  }));

/** Cached input costs as much as other input unless it is said, and writing it to the cache a quarter more. */
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

const model = z
  .strictObject({
    routes: z
      .array(
        z.strictObject({ upstream: z.string(), model: z.string().min(1), weight: wholeNumber(1).optional() }),
      )
      .min(1),
    price: price.optional(),
    free: z.literal(true).optional(),
    holdTokens: wholeNumber(1).default(defaultHoldTokens),
  })
  .refine(({ price: set, free }) => (set === undefined) !== (free === undefined), {
    message: 'expected either a price or free: true',
  });

/** Models by name, or `{ from: <upstream> }` to offer what that upstream lists. */
const models = z.record(z.string().min(1), model);
const discoveredModels = z.strictObject({
  from: z.string(),
  allow: z.array(namePattern).min(1).default(['*']),
  rename: z.record(namePattern, namePattern).default({}),
  price: price.optional(),
  holdTokens: wholeNumber(1).default(defaultHoldTokens),
});

/** Paths that are passed on verbatim; our own can't be among them. */
const passthrough = z
  .strictObject({
    path: z
      .string()
      .regex(
        /^(\/(?!\.\.?(\/|$))[A-Za-z0-9._~-]+)+$/,
        "expected a path such as /tokenize, without patterns and without '.' or '..' as a segment",
      )
      .refine((path) => !ownPaths.test(path), 'this path is one of the gateway itself'),
    upstream: z.string(),
    price: z.strictObject({ request: usd }).optional(),
    free: z.literal(true).optional(),
  })
  .refine(({ price: set, free }) => set === undefined || free === undefined, {
    message: 'expected either a price or free: true',
  });

const sections = {
  server: z
    .strictObject({
      host: z.string().default(defaultHost),
      port: port.default(defaultPort),
      maxBody: byteSize.prefault('1MiB'),
      drain: duration.prefault('25s'),
      maxConnections: wholeNumber(1).optional(),
      maxAnonymousPerAddress: wholeNumber(1).optional(),
    })
    .prefault({}),
  admin: z
    .strictObject({
      host: z.string().default(defaultHost),
      port: port.default(defaultAdminPort),
      token: bearerToken.optional(),
    })
    .prefault({}),
  storage: z
    .strictObject({
      url: storageUrl.default('sqlite:data/textgate.db'),
      durability: z.enum(['normal', 'full']).default('full'),
    })
    .prefault({}),
  limits: z
    .strictObject({
      concurrency: wholeNumber(1).default(2),
      requestsPerMinute: wholeNumber(1).default(60),
      queueWait: duration.prefault('0s'),
      balanceMode: z.enum(['soft', 'strict']).default('soft'),
      lowBalance: usd.prefault('1.00'),
    })
    .prefault({}),
  compatibility: z
    .strictObject({
      sampling: z.enum(samplingPolicies).default(defaultCompatibility.sampling),
      unknownFields: z.enum(unknownFieldPolicies).default(defaultCompatibility.unknownFields),
      responsesDone: z.boolean().default(defaultCompatibility.responsesDone),
    })
    .prefault({}),
  upstreams: z.record(z.string().min(1), upstream),
  passthrough: z
    .array(passthrough)
    .refine(
      (paths) => new Set(paths.map(({ path }) => path)).size === paths.length,
      'a path stands here twice',
    )
    .default([]),
};

/** The two forms of a config: with its models listed, or asked of an upstream. */
export const listing = z.strictObject({ ...sections, models });
export const discovering = z.strictObject({ ...sections, models: discoveredModels });

/** A config as a user writes it: what `createGateway` takes, and what a YAML file holds. */
export type ConfigInput = z.input<typeof listing> | z.input<typeof discovering>;

/** A checked config: defaults filled in, times in milliseconds, sizes in bytes. */
export type Config = z.output<typeof listing> | z.output<typeof discovering>;

/** Whether a config's models are to be asked of an upstream. */
export function isDiscovered(config: Config['models']): config is z.output<typeof discoveredModels> {
  return typeof config['from'] === 'string';
}

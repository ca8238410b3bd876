import { z } from 'zod';
import {
  defaultCompatibility,
  samplingPolicies,
  unknownFieldPolicies,
} from '../protocol/contract/compatibility.ts';
import { duration, usd } from '../shared/schema-values.ts';
import { minTokenLength } from './admin-token.ts';
import { declaredKeys } from './declared-keys.ts';
import { price } from './price-schema.ts';
import { upstream } from './upstream-schema.ts';
import { byteSize, namePattern, port, wholeNumber } from './values.ts';

/** The default address of both listeners. */
export const defaultHost = '127.0.0.1';
const defaultPort = 8080;

/** The default port of the admin listener. */
export const defaultAdminPort = 8081;

/** The admin token: blanks around it come from a mounted secret; a Bearer header can't hold blanks within it. */
const bearerToken = z
  .string()
  .trim()
  .min(minTokenLength)
  .regex(/^[\x21-\x7e]*$/, 'expected printable ASCII without blanks');

/** How many output tokens the hold of a request without a limit of its own covers. */
const defaultHoldTokens = 1_024;

/** The gateway's own paths, which can't be passthrough paths. */
const ownPaths = /^\/v1\/(chat\/completions|responses|models|key)(\/|$)/;

const storageUrl = z
  .string()
  .regex(/^sqlite:.+$/, 'expected sqlite: and a file, such as sqlite:data/textgate.db');

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

/** Models by name. */
const models = z.record(z.string().min(1), model);

/** `models: { from: <upstream> }`, which offers the models that the upstream lists. */
const discoveredModels = z.strictObject({
  from: z.string(),
  allow: z.array(namePattern).min(1).default(['*']),
  rename: z.record(namePattern, namePattern).default({}),
  price: price.optional(),
  holdTokens: wholeNumber(1).default(defaultHoldTokens),
});

/** A path whose requests go to an upstream unchanged. */
const passthrough = z
  .strictObject({
    path: z
      .string()
      .regex(
        /^(\/(?!\.\.?(\/|$))[A-Za-z0-9._~-]+)+$/,
        "expected a path such as /tokenize, without patterns and without '.' or '..' as a segment",
      )
      .refine((path) => !ownPaths.test(path), 'this path belongs to the gateway itself'),
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
  keys: declaredKeys,
  upstreams: z.record(z.string().min(1), upstream),
  passthrough: z
    .array(passthrough)
    .refine(
      (paths) => new Set(paths.map(({ path }) => path)).size === paths.length,
      'expected each path only once',
    )
    .default([]),
};

/** A config that lists its models. */
export const listing = z.strictObject({ ...sections, models });

/** A config that discovers its models from an upstream. */
export const discovering = z.strictObject({ ...sections, models: discoveredModels });

/** A config as its author writes it: the argument of `createGateway`, and the content of a YAML file. */
export type ConfigInput = z.input<typeof listing> | z.input<typeof discovering>;

/** A checked config: defaults filled in, durations in milliseconds, sizes in bytes. */
export type Config = z.output<typeof listing> | z.output<typeof discovering>;

/** Whether a config discovers its models from an upstream. */
export function isDiscovered(config: Config['models']): config is z.output<typeof discoveredModels> {
  return typeof config['from'] === 'string';
}

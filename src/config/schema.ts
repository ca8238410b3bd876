import { z } from 'zod';
import { defaultCompatibility } from '../protocol/contract/compatibility.ts';
import { isLinkLocal } from '../shared/link-local.ts';
import {
  byteSize,
  duration,
  headerName,
  headerValue,
  namePattern,
  port,
  upstreamUrl,
  usd,
  wholeNumber,
  secret,
  someTime,
} from './values.ts';

/** The default address of each listener. */
export const defaultHost = '127.0.0.1';
const defaultPort = 8080;
export const defaultAdminPort = 8081;

const minTokenLength = 16;

/** Output tokens to expect of a request that names no cap of its own. */
const defaultHoldTokens = 1_024;

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
        connect: someTime.prefault('5s'),
        firstByte: someTime.prefault('120s'),
        idle: someTime.prefault('60s'),
        total: someTime.prefault('10m'),
      })
      .prefault({}),
  })
  .refine(({ url, allowLinkLocal }) => allowLinkLocal || !isLinkLocal(url.hostname), {
    path: ['url'],
    message:
      "a link-local address, where clouds keep a machine's credentials: set allowLinkLocal: true if it is meant",
  });

/** What a million tokens cost. */
const price = z
  .strictObject({ input: usd, cachedInput: usd.optional(), output: usd })
  .transform(({ input, cachedInput = input, output }) => ({ input, cachedInput, output }));

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
const passthrough = z.strictObject({
  path: z
    .string()
    .regex(/^(\/[A-Za-z0-9._~-]+)+$/, 'expected a path such as /tokenize, without patterns')
    .refine((path) => !ownPaths.test(path), 'this path is one of the gateway itself'),
  upstream: z.string(),
});

const sections = {
  server: z
    .strictObject({
      host: z.string().default(defaultHost),
      port: port.default(defaultPort),
      maxBody: byteSize.prefault('1MiB'),
      drain: duration.prefault('25s'),
    })
    .prefault({}),
  admin: z
    .strictObject({
      host: z.string().default(defaultHost),
      port: port.default(defaultAdminPort),
      token: z.string().min(minTokenLength).optional(),
    })
    .prefault({}),
  storage: z
    .strictObject({
      url: storageUrl.default('sqlite:data/textgate.db'),
      durability: z.enum(['normal', 'full']).default('normal'),
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
      sampling: z.enum(['strip', 'strict']).default(defaultCompatibility.sampling),
      unknownFields: z.enum(['reject', 'ignore']).default(defaultCompatibility.unknownFields),
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

import { z } from 'zod';
import { defaultCompatibility } from '../protocol/contract/compatibility.ts';
import { isLinkLocal } from '../shared/link-local.ts';
import { nearestName } from '../shared/nearest-name.ts';
import {
  byteSize,
  duration,
  headerName,
  headerValue,
  port,
  upstreamUrl,
  usd,
  wholeNumber,
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

const upstream = z
  .strictObject({
    url: upstreamUrl,
    apiKey: z.string().min(1).optional(),
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
    timeouts: z
      .strictObject({
        connect: duration.prefault('5s'),
        firstByte: duration.prefault('120s'),
        idle: duration.prefault('60s'),
        total: duration.prefault('10m'),
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
const discoveredModels = z.strictObject({ from: z.string() });

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
  passthrough: z.array(passthrough).default([]),
};

const listing = z.strictObject({ ...sections, models });
const discovering = z.strictObject({ ...sections, models: discoveredModels });

/** A config as a user writes it: what `createGateway` takes, and what a YAML file holds. */
export type ConfigInput = z.input<typeof listing> | z.input<typeof discovering>;

/** A checked config: defaults filled in, times in milliseconds, sizes in bytes. */
export type Config = z.output<typeof listing> | z.output<typeof discovering>;

/** Checks a config; returns it, or every problem at once, each with its path. */
export function readConfig(
  input: unknown,
): { readonly config: Config } | { readonly problems: readonly string[] } {
  const schema = discovers(input) ? discovering : listing;
  const read = schema.safeParse(input);
  const faults = read.error?.issues.flatMap((issue) => describeIssue(issue, schema)) ?? [];
  const problems = [...faults, ...unknownUpstreams(input)];
  return read.success && problems.length === 0 ? { config: read.data } : { problems };
}

/** Whether a config's models are to be asked of an upstream. */
export function isDiscovered(config: Config['models']): config is { from: string } {
  return typeof config['from'] === 'string';
}

/** As much of a config's shape as can be relied on before it is checked. */
interface UncheckedConfig {
  readonly upstreams?: Readonly<Record<string, unknown>>;
  readonly models?: Readonly<Record<string, unknown>>;
  readonly passthrough?: unknown;
}

function routesOf(entry: unknown): readonly ({ readonly upstream?: unknown } | null)[] {
  const { routes } = (entry ?? {}) as { readonly routes?: unknown };
  return Array.isArray(routes) ? routes : [];
}

function discovers(input: unknown): boolean {
  return typeof (input as UncheckedConfig | null)?.models?.['from'] === 'string';
}

/** Looks at the unchecked config, so that a name that leads nowhere is reported along with all other problems. */
function unknownUpstreams(input: unknown): readonly string[] {
  const { upstreams, models: offered, passthrough: passed } = (input ?? {}) as UncheckedConfig;
  if (typeof upstreams !== 'object' || upstreams === null) return [];
  const known = Object.keys(upstreams);
  const named = discovers(input)
    ? [{ path: 'models.from', target: offered?.['from'] }]
    : Object.entries(offered ?? {}).flatMap(([name, entry]) =>
        routesOf(entry).map((route, index) => ({
          path: `models.${name}.routes[${index}].upstream`,
          target: route?.upstream,
        })),
      );
  const passes = (Array.isArray(passed) ? passed : []).map((entry: { upstream?: unknown } | null, index) => ({
    path: `passthrough[${index}].upstream`,
    target: entry?.upstream,
  }));
  return [...named, ...passes].flatMap(({ path, target }) =>
    typeof target !== 'string' || known.includes(target)
      ? []
      : [`${path}: no upstream is named '${target}'${suggestion(target, known)}`],
  );
}

function describeIssue(issue: z.core.$ZodIssue, schema: z.ZodType): readonly string[] {
  if (issue.code !== 'unrecognized_keys') return [`${writePath(issue.path)}: ${issue.message}`];
  const known = knownKeys(schema, issue.path);
  return issue.keys.map((key) => `${writePath([...issue.path, key])}: unknown key${suggestion(key, known)}`);
}

function suggestion(wrong: string, known: readonly string[]): string {
  const nearest = nearestName(wrong, known);
  return nearest === null ? `; known here: ${known.join(', ')}` : `; did you mean '${nearest}'?`;
}

function writePath(path: readonly PropertyKey[]): string {
  const written = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return written === '' ? 'config' : written.replace(/^\./, '');
}

/** The keys that the schema knows at a path of the input. */
function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let here: z.ZodType = unwrap(schema);
  for (const part of path) {
    if (here instanceof z.ZodObject) here = unwrap(here.shape[String(part)] as z.ZodType);
    else if (here instanceof z.ZodRecord) here = unwrap(here.valueType as z.ZodType);
    else if (here instanceof z.ZodArray) here = unwrap(here.element as z.ZodType);
  }
  return here instanceof z.ZodObject ? Object.keys(here.shape) : [];
}

function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault || schema instanceof z.ZodOptional)
    return unwrap(schema.unwrap() as z.ZodType);
  return schema;
}

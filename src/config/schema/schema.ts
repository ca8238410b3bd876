import { z } from 'zod';
import {
  defaultCompatibility,
  samplingPolicies,
  unknownFieldPolicies,
} from '../../protocol/contract/compatibility.ts';
import { duration, usd, valueKinds } from '../../shared/schema-values.ts';
import { listenHost } from './address-values.ts';
import { corsOrigins, trustedProxies } from './client-values.ts';
import { minTokenLength } from '../admin-token.ts';
import { declaredKeys } from '../declared-keys.ts';
import { defaultAdminPort, defaultHost, defaultPort } from '../default-addresses.ts';
import { connectionDeadlines, headSize } from './edge-schema.ts';
import { discoveredModels, models, passthroughPaths } from './model-schema.ts';
import { basePath, socketMode, socketPath, tls } from './listener-schema.ts';
import { records } from './records-schema.ts';
import { storage } from './storage-schema.ts';
import { upstream } from './upstream-schema.ts';
import { events, webhooks } from './webhooks-schema.ts';
import { byteSize, chosenName, maxWorkers, port, requestLimit, trueOrFalse, wholeNumber } from './values.ts';

/** The admin token: blanks around it come from a mounted secret; a Bearer header can't hold blanks within it. */
const bearerToken = z
  .string()
  .trim()
  .min(minTokenLength)
  .regex(/^[\x21-\x7e]*$/, 'expected printable ASCII without blanks')
  .register(valueKinds, { kind: 'secret' });

const server = z.strictObject({
  host: listenHost
    .default(defaultHost)
    .describe('The address of the listener for clients; `0.0.0.0` is every network of the machine.'),
  port: port
    .default(defaultPort)
    .describe('The port of the listener for clients; the system chooses one for 0.'),
  socket: socketPath.optional().meta({
    description:
      'The path of a unix socket that takes the place of `host` and `port`, relative to the working directory.',
    examples: ['/run/textgate/textgate.sock'],
  }),
  socketMode: socketMode
    .default('660')
    .describe('The permissions of the unix socket: the users who may write to it may connect.'),
  tls: tls.optional().meta({
    description: 'The certificate with which the listener for clients speaks HTTPS; it is HTTP without one.',
    examples: [{ cert: '/etc/textgate/tls.crt', key: '/etc/textgate/tls.key' }],
  }),
  basePath: basePath.optional().meta({
    description:
      'The path below which the listener for clients has all of its paths, such as `/llm/v1/models`.',
    examples: ['/llm'],
  }),
  workers: z
    .union([z.literal('auto'), wholeNumber(1, maxWorkers)])
    .default(1)
    .meta({
      description: `The processes that serve both ports; \`auto\` is one for each core. More than one need a PostgreSQL database. At most ${maxWorkers}.`,
      examples: [4, 'auto'],
    }),
  maxHead: headSize
    .prefault('16KiB')
    .describe("The largest head of a request: its first line and headers. Also the operators' listener's."),
  maxBody: byteSize.prefault('1MiB').describe('The largest body of a request.'),
  timeouts: connectionDeadlines
    .prefault({})
    .describe("How long clients may take. Also those of the operators' listener."),
  drain: duration
    .prefault('25s')
    .describe('How long running requests may take to finish when the service shuts down.'),
  shutdownDelay: duration
    .prefault('0s')
    .describe(
      'How long requests are still taken after SIGTERM while `/readyz` answers 503, so that a balancer stops sending them; `drain` begins after it.',
    ),
  maxConnections: wholeNumber(1)
    .optional()
    .meta({
      description: "The most open connections; default: derived from the process's limit of open files.",
      examples: [1_000],
    }),
  maxAnonymousPerAddress: wholeNumber(1)
    .optional()
    .meta({
      description:
        'The most connections of one address on which no valid key was presented; default: half of `maxConnections`, from 16 to 1024.',
      examples: [64],
    }),
  trustedProxies: trustedProxies.default([]).meta({
    description:
      'The proxies in front of the gateway, whose `X-Forwarded-For` is believed: addresses, networks, `loopback`, `private` or `linklocal`.',
    examples: [['loopback', '10.0.0.0/8']],
  }),
  logAddresses: trueOrFalse.optional().meta({
    description:
      "Whether the client's address is in the log and the traces of each request; default: yes if `trustedProxies` names a proxy, else no.",
    examples: [true],
  }),
  corsOrigins: corsOrigins.default([]).meta({
    description:
      'The web pages that may call the gateway from browsers, by their origins; `*` is all of them.',
    examples: [['https://app.example.com']],
  }),
});

const admin = z.strictObject({
  host: listenHost
    .default(defaultHost)
    .describe('The address of the listener for operators: metrics, probes and the admin API.'),
  port: port
    .default(defaultAdminPort)
    .describe('The port of the listener for operators; the system chooses one for 0.'),
  token: bearerToken.optional().meta({
    description: `The Bearer token of the admin API, of ${minTokenLength} characters or more; default: generated in \`data/admin-token\`, but not with a PostgreSQL database, whose nodes must be given the same one.`,
    examples: ['${ADMIN_TOKEN}'],
  }),
});

const limits = z.strictObject({
  concurrency: requestLimit.default(2).describe('The requests that a key may have in progress at a time.'),
  requestsPerMinute: requestLimit
    .default(60)
    .describe('The requests that a key may start in any 60 seconds.'),
  queueWait: duration
    .prefault('0s')
    .describe('How long a request may wait for a slot of its key before it is refused.'),
  balanceMode: z
    .enum(['soft', 'strict'])
    .default('soft')
    .describe(
      'With `soft` a request may start while any money is free; with `strict` the most that it can cost must be free.',
    ),
  lowBalance: usd
    .prefault('1.00')
    .describe(
      'The balance in USD, with what is held of it, below which `balance.low` is sent to webhooks. Metrics count the keys whose balance is below it.',
    ),
});

const compatibility = z.strictObject({
  sampling: z
    .enum(samplingPolicies)
    .default(defaultCompatibility.sampling)
    .describe(
      'Sampling parameters are dropped (`strip`), or refused unless they have a usual value (`strict`).',
    ),
  unknownFields: z
    .enum(unknownFieldPolicies)
    .default(defaultCompatibility.unknownFields)
    .describe('Unknown parameters are refused (`reject`), or dropped (`ignore`).'),
  responsesDone: trueOrFalse
    .default(defaultCompatibility.responsesDone)
    .describe('Ends streams of the Responses protocol with `data: [DONE]`.'),
});

const receipts = z.strictObject({
  upstreams: z
    .enum(['shown', 'hidden'])
    .default('shown')
    .describe("Whether a key's receipts name the upstreams that served it (`shown`) or not (`hidden`)."),
});

const sections = {
  server: server.prefault({}).describe('The listener for clients.'),
  admin: admin.prefault({}).describe('The listener for operators: metrics, probes and the admin API.'),
  storage: storage.prefault({}).describe('The database of keys, balances and the usage record.'),
  records: records.prefault({}).describe('How long the records of requests are kept.'),
  limits: limits.prefault({}).describe('The limits of keys that have none of their own.'),
  compatibility: compatibility
    .prefault({})
    .describe('How the parameters of requests are read; a key may differ.'),
  keys: declaredKeys.default({}).meta({
    description:
      'The API keys of clients, by name: they are created, changed and revoked as this list says. Others are issued by the admin API.',
    examples: [{ bob: { key: '${BOBS_KEY}', requestsPerMinute: 120 } }],
  }),
  receipts: receipts.prefault({}).describe("What the receipts of a key's own requests show."),
  webhooks: webhooks.default({}).meta({
    description: 'The receivers of events, by a name of your choice.',
    examples: [{ ops: { url: 'https://hooks.example/textgate', secret: '${WEBHOOK_SECRET}' } }],
  }),
  events: events.prefault({}).describe('When events come that the gateway itself watches for.'),
  upstreams: z.record(chosenName, upstream).meta({
    description: 'The providers that are called, by a name of your choice.',
    examples: [{ local: { url: 'http://127.0.0.1:8000/v1' } }],
  }),
  passthrough: passthroughPaths.default([]).meta({
    description: 'Paths whose requests go to an upstream unchanged, with a key and its limits.',
    examples: [[{ path: '/tokenize', upstream: 'local' }]],
  }),
};

/** The texts of `models` in both forms. */
const modelsMeta = {
  description:
    'The models on offer, by the names that clients use; or `from`, to offer those that an upstream lists.',
  examples: [
    { small: { routes: [{ upstream: 'local', model: 'qwen3-0.6b' }], free: true } },
    { from: 'local' },
  ],
};

/** A config that lists its models. */
export const listing = z.strictObject({ ...sections, models: models.meta(modelsMeta) });

/** A config that discovers its models from an upstream. */
export const discovering = z.strictObject({ ...sections, models: discoveredModels.meta(modelsMeta) });

/** A config of either kind, as the JSON Schema has it; a config is read by one of the two above, for better messages. */
export const anyConfig = z.strictObject({
  ...sections,
  models: z.union([discoveredModels, models]).meta(modelsMeta),
});

/** A config as its author writes it: the argument of `createGateway`, and the content of a YAML file. */
export type ConfigInput = z.input<typeof listing> | z.input<typeof discovering>;

/** A checked config: defaults filled in, durations in milliseconds, sizes in bytes. */
export type Config = z.output<typeof listing> | z.output<typeof discovering>;

/** Whether a config discovers its models from an upstream. */
export function isDiscovered(config: Config['models']): config is z.output<typeof discoveredModels> {
  return typeof config['from'] === 'string';
}

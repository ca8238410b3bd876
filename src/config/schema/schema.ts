import { z } from 'zod';
import { defaultCompatibility } from '../../protocol/contract/compatibility.ts';
import { samplingPolicies, unknownFieldPolicies } from '../../shared/compatibility-policies.ts';
import { duration, usd } from '../../shared/schema-values.ts';
import { declaredKeys } from '../declared-keys.ts';
import { readStatementKey } from '../statement-key.ts';
import { admin } from './admin-schema.ts';
import { groups } from './groups-schema.ts';
import { metering } from './metering-schema.ts';
import { discoveredModels, models, passthroughPaths } from './model-schema.ts';
import { age, records } from './records-schema.ts';
import { resume } from './resume-schema.ts';
import { server } from './server-schema.ts';
import { storage } from './storage-schema.ts';
import { upstream } from './upstream-schema.ts';
import { chosenName, readableFile, requestLimit, trueOrFalse, wholeNumber } from './values.ts';
import { events, webhooks } from './webhooks-schema.ts';

/** How statements are signed. */
const statements = z.strictObject({
  key: readableFile(readStatementKey)
    .optional()
    .meta({
      description:
        'The path of the private key that signs statements, of Ed25519 in PEM, relative to the working directory. Default: a key that is made at the first statement and kept in the database.',
      examples: ['/etc/textgate/statements.pem'],
    }),
});

/** How long the audit of what operators do is kept. */
const audit = z.strictObject({
  keep: age
    .prefault('400d')
    .describe(
      'How long lines of the audit are kept, at least `1d`. Older ones are removed, and written to the folder of `records.archive` before, if there is one.',
    ),
});

const limits = z.strictObject({
  concurrency: requestLimit.default(2).describe('The requests that a key may have in progress at a time.'),
  requestsPerMinute: requestLimit
    .default(60)
    .describe('The requests that a key may start in any 60 seconds.'),
  tokensPerMinute: requestLimit.optional().meta({
    description: 'The tokens of input and output that a key may use in any 60 seconds; default: not limited.',
    examples: [100_000],
  }),
  tokensPerDay: requestLimit.optional().meta({
    description: 'The tokens of input and output that a key may use in any 24 hours; default: not limited.',
    examples: [2_000_000],
  }),
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
  usageCost: trueOrFalse
    .default(defaultCompatibility.usageCost)
    .describe(
      'The usage of an answer has its charge in USD as `cost`. Clients that refuse unknown fields may fail.',
    ),
  chargeComment: trueOrFalse
    .default(defaultCompatibility.chargeComment)
    .describe('Streams have their charge in a comment before their end: `: x-textgate-charge: 0.000025`.'),
});

/** The most keys with series of their own: each of them adds one to every scrape. */
const maxTopKeys = 50;

const metrics = z.strictObject({
  topKeys: wholeNumber(0, maxTopKeys)
    .default(0)
    .describe(
      `The keys, and the groups, that spent most in the current day (UTC) have their charges and names in the metrics: this many of each, at most ${maxTopKeys}; 0 for none.`,
    ),
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
  audit: audit.prefault({}).describe('How long the audit of what operators do is kept.'),
  limits: limits.prefault({}).describe('The limits of keys that have none of their own.'),
  resume: resume.prefault({}).describe('Requests that clients send again when a connection has broken.'),
  compatibility: compatibility
    .prefault({})
    .describe('How requests are read and answers written; a key may differ.'),
  keys: declaredKeys.default({}).meta({
    description:
      'The API keys of clients, by name: they are created, changed and revoked as this list says. Others are issued by the admin API.',
    examples: [{ bob: { key: '${BOBS_KEY}', requestsPerMinute: 120 } }],
  }),
  groups: groups.default({}).meta({
    description:
      'Groups of keys that share a budget or a concurrency, by name: a key names its own as `group`.',
    examples: [{ research: { concurrency: 8, budget: { amount: '500', per: 'month' } } }],
  }),
  metering: metering.prefault({}).describe('A second count of tokens, beside that of the upstreams.'),
  metrics: metrics.prefault({}).describe('What the metrics show beside that of every gateway.'),
  receipts: receipts.prefault({}).describe("What the receipts of a key's own requests show."),
  webhooks: webhooks.default({}).meta({
    description: 'The receivers of events, by a name of your choice.',
    examples: [{ ops: { url: 'https://hooks.example/textgate', secret: '${WEBHOOK_SECRET}' } }],
  }),
  events: events.prefault({}).describe('When events come that the gateway itself watches for.'),
  statements: statements.prefault({}).describe('How statements of accounts are signed.'),
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

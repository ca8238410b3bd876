import { z } from 'zod';
import { wholeBudget } from './budget-values.ts';
import { samplingPolicies, unknownFieldPolicies } from './compatibility-policies.ts';
import {
  duration,
  groupName,
  instant,
  maxLimit,
  modelsOfKey,
  networksOfKey,
  tagsOfKey,
  usd,
} from './schema-values.ts';

/** The largest weight that a key may have in the queues of upstreams. */
const maxWeight = 1_000;

/** The bounds of how long a request goes on without its client, in milliseconds: what it generates then is paid. */
const minJoinRetriesMs = 1_000;
const maxJoinRetriesMs = 60_000;

/** A time within these bounds in milliseconds; `null` for none, which is written `0s`. */
const joinRetries = duration
  .refine(
    (ms) => ms === 0 || (ms >= minJoinRetriesMs && ms <= maxJoinRetriesMs),
    'expected a duration from 1s to 60s, or 0s for off',
  )
  .transform((ms) => (ms === 0 ? null : ms));

/** How an input writes numbers and switches: a config may have texts in their place, as the environment does. */
interface Forms {
  readonly wholeNumber: (min: number, max: number) => z.ZodType<number, number>;
  readonly trueOrFalse: z.ZodType<boolean, boolean>;
}

/**
 * What is set of a key: its limits, its other terms, and its compatibility, each with its schema and what it is. What a config
 * declares and what the admin API takes follow from it; each says itself what may be left out.
 */
export function keySettingsOf({ wholeNumber, trueOrFalse }: Forms) {
  return {
    limits: limitsOf(wholeNumber(1, maxLimit)),
    terms: {
      models: modelsOfKey.meta({
        description: 'The models that the key may use; default: all.',
        examples: [['small']],
      }),
      allowFrom: networksOfKey.meta({
        description: 'The addresses and networks from which the key may be used; default: all.',
        examples: [['10.0.0.0/8', '2001:db8::/32']],
      }),
      tags: tagsOfKey.meta({
        description: 'The tags that requests of the key may have in `x-textgate-tag`; default: none.',
        examples: [['search', 'summaries']],
      }),
      expiresAt: instant.meta({
        description: 'When the key expires: a time, or a day in UTC; default: never.',
        examples: ['2030-01-01T00:00:00Z'],
      }),
      budget: wholeBudget,
      group: groupName.meta({
        description: 'The group whose budget and concurrency the key shares, one of `groups`; default: none.',
        examples: ['research'],
      }),
      weight: wholeNumber(1, maxWeight).meta({
        description:
          'The weight of the key in the queues of upstreams: with 2, twice as many turns as a key with 1; default: 1.',
        examples: [2],
      }),
      joinRetries: joinRetries.meta({
        description:
          'How long a request of the key goes on whose client has gone, so that a retry of an SDK (`X-Stainless-Retry-Count` of 1 or more, the same bytes) joins it instead of running anew: 1s to 60s. Off by default, as `0s`: it is a grace for every request of the key, and what is generated in it is paid.',
        examples: ['10s'],
      }),
      lowBalance: usd.meta({
        description:
          'The balance in USD, with what is held of it, below which `balance.low` is reported; default: that of `limits`.',
        examples: ['5.00'],
      }),
    },
    compatibility: compatibilityOf(trueOrFalse),
  };
}

function limitsOf(limit: z.ZodType<number, number>) {
  return {
    concurrency: limit.meta({
      description: 'The requests that the key may have in progress at a time; default: that of `limits`.',
      examples: [4],
    }),
    requestsPerMinute: limit.meta({
      description: 'The requests that the key may start in any 60 seconds; default: that of `limits`.',
      examples: [120],
    }),
    tokensPerMinute: limit.meta({
      description: 'The tokens that the key may use in any 60 seconds; default: that of `limits`.',
      examples: [100_000],
    }),
    tokensPerDay: limit.meta({
      description: 'The tokens that the key may use in any 24 hours; default: that of `limits`.',
      examples: [2_000_000],
    }),
    queueWait: duration.meta({
      description: 'How long a request may wait for a slot of the key; default: that of `limits`.',
      examples: ['5s'],
    }),
  };
}

function compatibilityOf(trueOrFalse: z.ZodType<boolean, boolean>) {
  return z
    .strictObject(
      leftOut({
        sampling: z
          .enum(samplingPolicies)
          .meta({ description: 'How sampling parameters are read.', examples: ['strict'] }),
        unknownFields: z
          .enum(unknownFieldPolicies)
          .meta({ description: 'How unknown parameters are read.', examples: ['ignore'] }),
        responsesDone: trueOrFalse.meta({
          description: 'Ends streams of the Responses protocol with `data: [DONE]`.',
          examples: [true],
        }),
        usageCost: trueOrFalse.meta({
          description: 'The usage of an answer has its charge in USD as `cost`.',
          examples: [true],
        }),
        chargeComment: trueOrFalse.meta({
          description: 'Streams have their charge in a comment before their end.',
          examples: [true],
        }),
      }),
    )
    .describe(
      'How requests are read and answers written, where it differs from the section `compatibility`.',
    );
}

/** Settings that may each be left out. What each is stays with it, where messages and the config's reference look for it. */
export function leftOut<Settings extends Readonly<Record<string, z.ZodType>>>(settings: Settings) {
  const entries = Object.entries(settings).map(([name, schema]) => [
    name,
    schema.optional().meta({ ...schema.meta() }),
  ]);
  return Object.fromEntries(entries) as { [Name in keyof Settings]: z.ZodOptional<Settings[Name]> };
}

/** Settings that may each be left out, or `null`. */
export function leftOutOrNull<Settings extends Readonly<Record<string, z.ZodType>>>(settings: Settings) {
  const entries = Object.entries(settings).map(([name, schema]) => [name, schema.nullish()]);
  return Object.fromEntries(entries) as {
    [Name in keyof Settings]: z.ZodOptional<z.ZodNullable<Settings[Name]>>;
  };
}

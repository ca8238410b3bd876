import { z } from 'zod';
import type { LimitSettings, LimiterSettings } from '../../domain/ports/upstream-limiters.ts';
import { isLimited } from '../../domain/upstream-limiter/counted-limits.ts';
import { maxQueue } from '../../domain/upstream-limiter/upstream-limiter.ts';
import { duration } from '../../shared/schema-values.ts';
import { chosenName, requestLimit, trueOrFalse, wholeNumber } from './values.ts';

/** How many requests may wait for an upstream with limits, and how long, in milliseconds, where its config does not say. */
const defaultQueue = 100;
const defaultQueueWaitMs = 30_000;

/** What is wrong with settings of a queue, or with a model, where nothing is limited. */
const someLimit = 'set maxInFlight, requestsPerMinute, tokensPerMinute or learnLimits, or leave it out';
const noLimit = `expected only beside a limit, as nothing waits without one: ${someLimit}`;

/** What limits the use of an upstream, or of a model there, and who may wait for it. */
const limitFields = {
  maxInFlight: requestLimit.optional().meta({
    description: 'The requests that it may have in progress at a time; default: not limited.',
    examples: [4],
  }),
  requestsPerMinute: requestLimit.optional().meta({
    description:
      'The requests that may be sent to it in any 60 seconds, by its own count; default: not limited.',
    examples: [60],
  }),
  tokensPerMinute: requestLimit.optional().meta({
    description:
      'The tokens of input and output that may be used there in any 60 seconds; default: not limited.',
    examples: [100_000],
  }),
  learnLimits: trueOrFalse
    .default(false)
    .describe(
      'Also keeps the limits that its answers report: `x-ratelimit-*`, `anthropic-ratelimit-*`, `retry-after`, and 429s.',
    ),
  queue: wholeNumber(0, maxQueue)
    .optional()
    .meta({
      description: `How many requests may wait for it while one of its limits is reached; default: ${defaultQueue}, of a model: as its upstream.`,
      examples: [defaultQueue],
    }),
  queueWait: duration.optional().meta({
    description: `How long a request may wait for it; \`0s\` refuses it at once. Default: ${defaultQueueWaitMs / 1_000}s, of a model: as its upstream.`,
    examples: ['30s'],
  }),
};

/** Checked limits, of an upstream or of a model there. */
type LimitsConfig = {
  readonly [Name in keyof typeof limitFields]?: z.output<(typeof limitFields)[Name]> | undefined;
};

const modelLimits = z.strictObject(limitFields).refine((limits) => isLimited(settingsOf(limits)), {
  message: `expected a limit at least: ${someLimit}`,
  // A limit whose name or value is wrong was meant as one.
  when: ({ issues }) => issues.length === 0,
});

/** What limits the use of an upstream: all of its models together, and single ones beside that. */
export const limiterFields = {
  ...limitFields,
  models: z
    .record(chosenName, modelLimits)
    .default({})
    .meta({
      description:
        'Limits of single models there, by their names at the upstream: they hold beside its own. Where they leave out `queue` or `queueWait`, that of the upstream counts.',
      examples: [{ 'qwen3-0.6b': { maxInFlight: 1 } }],
    }),
};

/** The fields of a checked upstream that limit its use. */
type LimiterConfig = LimitsConfig & { readonly models?: Readonly<Record<string, LimitsConfig>> | undefined };

/** The problems of settings of a queue in front of an upstream of which nothing is limited: it would always be empty. */
export function queueProblems(
  config: LimiterConfig,
): readonly { readonly path: string[]; readonly message: string }[] {
  if (hasLimits(config)) return [];
  const set = (['queue', 'queueWait'] as const).filter((name) => config[name] !== undefined);
  return set.map((name) => ({ path: [name], message: noLimit }));
}

/** The limits of the upstreams that have a limit at least, or have a model with one, by name. */
export function limiterSettingsOf(
  upstreams: Readonly<Record<string, LimiterConfig>>,
): ReadonlyMap<string, LimiterSettings> {
  return new Map(
    Object.entries(upstreams).flatMap(([name, config]) =>
      hasLimits(config) ? [[name, limiterOf(config)]] : [],
    ),
  );
}

function hasLimits(config: LimiterConfig): boolean {
  return isLimited(settingsOf(config)) || Object.keys(config.models ?? {}).length > 0;
}

function limiterOf({ models = {}, ...config }: LimiterConfig): LimiterSettings {
  const { queue, queueWait } = config;
  const settings = settingsOf(config);
  return {
    ...settings,
    // Where models alone are limited, each has a queue of its own length, as far as one may be counted.
    queue: isLimited(settings) ? settings.queue : (queue ?? maxQueue),
    models: new Map(
      Object.entries(models).map(([name, limits]) => [name, settingsOf({ queue, queueWait, ...limits })]),
    ),
  };
}

function settingsOf(config: LimitsConfig): LimitSettings {
  const {
    maxInFlight = null,
    requestsPerMinute = null,
    tokensPerMinute = null,
    learnLimits = false,
  } = config;
  const { queue = defaultQueue, queueWait: queueWaitMs = defaultQueueWaitMs } = config;
  return { maxInFlight, requestsPerMinute, tokensPerMinute, learnLimits, queue, queueWaitMs };
}

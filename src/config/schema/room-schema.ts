import type { z } from 'zod';
import type { RoomSettings } from '../../domain/ports/rooms.ts';
import { duration } from '../../shared/schema-values.ts';
import { requestLimit, trueOrFalse, wholeNumber } from './values.ts';

/** The longest line before an upstream, in requests: the place of each of them in it is found by counting. */
const maxQueue = 1_000;

/** How many requests may wait for an upstream with limits, and how long, in milliseconds, where its config does not say. */
const defaultQueue = 100;
const defaultQueueWaitMs = 30_000;

/** What limits the use of an upstream, and who may wait for it. */
export const roomFields = {
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
      description: `How many requests may wait for it while one of its limits is reached; default: ${defaultQueue}.`,
      examples: [defaultQueue],
    }),
  queueWait: duration.optional().meta({
    description: `How long a request may wait for it; \`0s\` refuses it at once. Default: ${defaultQueueWaitMs / 1_000}s.`,
    examples: ['30s'],
  }),
};

/** The fields of a checked upstream that limit its use. */
type RoomConfig = {
  readonly [Name in keyof typeof roomFields]?: z.output<(typeof roomFields)[Name]> | undefined;
};

/** Whether any limit is set: a line in front of an upstream without one would always be empty. */
export function isLimited({
  maxInFlight,
  requestsPerMinute,
  tokensPerMinute,
  learnLimits,
}: RoomConfig): boolean {
  return (
    [maxInFlight, requestsPerMinute, tokensPerMinute].some((limit) => limit !== undefined) ||
    learnLimits === true
  );
}

/** The limits of the upstreams that have a limit at least, by name. */
export function roomsOf(upstreams: Readonly<Record<string, RoomConfig>>): ReadonlyMap<string, RoomSettings> {
  return new Map(
    Object.entries(upstreams).flatMap(([name, config]) =>
      isLimited(config) ? [[name, settingsOf(config)]] : [],
    ),
  );
}

function settingsOf(config: RoomConfig): RoomSettings {
  const {
    maxInFlight = null,
    requestsPerMinute = null,
    tokensPerMinute = null,
    learnLimits = false,
  } = config;
  const { queue = defaultQueue, queueWait: queueWaitMs = defaultQueueWaitMs } = config;
  return { maxInFlight, requestsPerMinute, tokensPerMinute, learnLimits, queue, queueWaitMs };
}

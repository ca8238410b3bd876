import { z } from 'zod';
import { parseDuration } from '../../shared/duration.ts';
import type { HedgePolicy } from '../../domain/routing/hedging.ts';
import { share } from './values.ts';

/** The longest time to wait before a second request, in milliseconds: an hour. */
const maxAfterMs = 3_600_000;

/** A quantile such as `p95`, or a duration. */
const after = z
  .string()
  .regex(/^(p[5-9]\d|\d+(\.\d+)?(ms|s|m))$/, 'expected p50 to p99, such as p95, or a duration such as 2s')
  .refine((text) => {
    const durationMs = parseDuration(text);
    return durationMs === null || (durationMs > 0 && durationMs <= maxAfterMs);
  }, 'expected a duration above 0 and of at most an hour');

/** When a request is sent to a second route, too. */
export const hedge = z.strictObject({
  after: after.default('p95').meta({
    description:
      'After which time without text a second request is sent: `p95` is the time within which 95 % of the recent first texts of the route came, `2s` is a fixed one.',
    examples: ['p95', '2s'],
  }),
  budget: share
    .refine((budget) => budget > 0, 'expected more than 0%: leave hedge out for no second requests')
    .prefault('5%')
    .describe(
      "How many second requests there may be, as a share of the model's other requests to upstreams.",
    ),
});

/** The policy of a checked setting. */
export function hedgePolicyOf({ after: text, budget }: z.output<typeof hedge>): HedgePolicy {
  const ms = parseDuration(text);
  return {
    after: ms === null ? { kind: 'quantile', share: Number(text.slice(1)) / 100 } : { kind: 'time', ms },
    budget,
  };
}

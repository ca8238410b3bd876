import { z } from 'zod';
import { duration } from '../../shared/schema-values.ts';
import type { ResumeSettings } from '../../pipeline/claims/running-claims.ts';

/** The longest grace of a request, and the longest time for which an answer is kept, in milliseconds. */
const maxGraceMs = 300_000;
const maxReplayMs = 600_000;

/** A duration of at most some minutes. */
const upTo = (maxMs: number) => duration.refine((ms) => ms <= maxMs, `expected at most ${maxMs / 60_000}m`);

/** Requests that clients name with an `Idempotency-Key`. */
export const resume = z.strictObject({
  grace: upTo(maxGraceMs)
    .prefault('10s')
    .describe(
      'How long a request with an `Idempotency-Key` goes on after its last client has left, at most 5m: a client that comes back within this time gets the whole answer.',
    ),
  replay: upTo(maxReplayMs)
    .prefault('2m')
    .describe(
      'How long the answer to such a request is kept in memory after its end, at most 10m: who asks again gets it once more, without a charge.',
    ),
});

/** What a config says of such requests. */
export function resumeSettingsOf({ grace, replay }: z.output<typeof resume>): ResumeSettings {
  return { graceMs: grace, replayMs: replay };
}

import { count } from '../../shared/count.ts';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { AcquireResult } from '../ports/upstream-limiters.ts';

/** Why a request got no permit: no more may wait, or it waited as long as it may. */
export type NoPermit = Extract<AcquireResult, { readonly kind: 'full' | 'timed_out' }>;

/** The shortest `retry-after` of a request that got no permit, in milliseconds. */
const leastRetryMs = 1_000;

/** The refusal for a request that got no permit at any of its upstreams, none of which is named. */
export function permitRefusal(result: NoPermit): Refusal {
  const retryAfterMs = Math.max(leastRetryMs, result.expectedMs);
  const { waiting } = result;
  const limit = { source: 'upstream', kind: 'queue', limit: null, waiting, retryAfterMs } as const;
  // Those of held models may fill the queue, and are not ahead of others.
  const others = waiting === 0 ? '' : `: ${count(waiting, 'request')} ${waiting === 1 ? 'waits' : 'wait'}`;
  const what =
    result.kind === 'full' && result.isTooLong
      ? "The model's provider is used up to its limit, for longer than a request may wait for it."
      : result.kind === 'full'
        ? `The model's provider is used up to its limit, and no more requests may wait for it${others}.`
        : `This request waited ${waitedSeconds(result.waitedMs)} s for the model's provider, which is used up to its limit; ${count(waiting, 'other request')} ${waiting === 1 ? 'waits' : 'wait'}.`;
  const message = `${what} Retry in ${secondsOf(retryAfterMs)} s; your own key is within its limits.`;
  return refuse('upstream_busy', message, { limit });
}

/** A time that has passed, not rounded up: a request that waited for a second did not wait for two. */
function waitedSeconds(milliseconds: number): string {
  return (milliseconds / 1_000).toFixed(milliseconds < 10_000 ? 1 : 0);
}

function secondsOf(milliseconds: number): number {
  return Math.ceil(milliseconds / 1_000);
}

import { errorBody, isRetryable, statusOf } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';

/** Statuses that SDKs retry by themselves, so that a useless retry has to be forbidden. */
const retriedStatuses = new Set([408, 409, 429]);

/** SDKs ignore a longer wait than this and retry within seconds, in milliseconds. */
const longestObeyedWaitMs = 60_000;

/** The OpenAI error envelope. */
export function refusalBody(refusal: Refusal): string {
  return JSON.stringify({ error: errorBody(refusal) });
}

/** When to come back, and whether to come back at all. */
export function refusalHeaders({ refusal, retryAfterMs }: Refusal): Record<string, string> {
  const headers: Record<string, string> = {};
  if (retryAfterMs !== null) {
    headers['retry-after'] = String(Math.max(1, Math.ceil(retryAfterMs / 1_000)));
    headers['retry-after-ms'] = String(Math.ceil(retryAfterMs));
  }
  const status = statusOf(refusal);
  const isRetried = status >= 500 || retriedStatuses.has(status);
  const isTooLong = retryAfterMs !== null && retryAfterMs > longestObeyedWaitMs;
  if (isRetried && (isTooLong || !isRetryable(refusal))) headers['x-should-retry'] = 'false';
  return headers;
}

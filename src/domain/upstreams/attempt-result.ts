/**
 * The result of an attempt: a closed set, used by records and metrics. `failure.ts` maps failures to it. `hedge_lost`: it
 * was stopped because another attempt, which ran beside it, had text first, or showed that the request is at fault.
 */
export type AttemptResult =
  | 'ok'
  | 'refused'
  | 'rate_limited'
  | 'overloaded'
  | 'auth'
  | 'unserved'
  | 'stale'
  | 'unreachable'
  | 'unanswered'
  | 'timeout'
  | 'error'
  | 'invalid'
  | 'truncated'
  | 'interrupted'
  | 'hedge_lost';

/** Whether an attempt has failed, rather than that it was stopped from outside. */
export function isFailed(result: string): boolean {
  return result !== 'ok' && result !== 'interrupted' && result !== 'hedge_lost';
}

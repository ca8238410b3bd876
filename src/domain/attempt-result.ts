/** The result of an attempt: a closed set, used by records and metrics. `failure.ts` maps failures to it. */
export type AttemptResult =
  | 'ok'
  | 'refused'
  | 'rate_limited'
  | 'overloaded'
  | 'auth'
  | 'unserved'
  | 'stale'
  | 'unreachable'
  | 'timeout'
  | 'error'
  | 'invalid'
  | 'truncated'
  | 'interrupted';

/** How an attempt at an upstream went; the closed set behind records and metrics. `failure.ts` says which failure is which. */
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

/** How an attempt at an upstream went; the closed set behind records and metrics. */
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

/** What the results say of the upstream: only failures count against it, and nothing is learnt from the rest. */
export const verdicts: Readonly<Record<AttemptResult, 'success' | 'failure' | 'neutral'>> = {
  ok: 'success',
  /** It answered: the fault is the request's. */
  refused: 'success',
  rate_limited: 'neutral',
  overloaded: 'neutral',
  auth: 'failure',
  /** It has not got what was asked for, such as the model: that says nothing of what it has. */
  unserved: 'neutral',
  stale: 'neutral',
  unreachable: 'failure',
  timeout: 'failure',
  error: 'failure',
  invalid: 'failure',
  truncated: 'failure',
  interrupted: 'neutral',
};

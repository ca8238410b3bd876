import { refuse } from '../shared/errors.ts';
import type { ErrorCode, Refusal } from '../shared/errors.ts';
import type { Failure, FailureKind } from '../protocol/text.ts';
import type { AttemptResult } from './attempt-result.ts';
import type { Outcome } from './consumption.ts';

/**
 * What an attempt says of its upstream:
 * - `success`, `failure`: counts for it, or against it;
 * - `busy`: it limits requests, and other upstreams come before it for a while;
 * - `nothing`: no news, but an answer from it.
 * - `unknown`: no answer, for a reason that is not the upstream's.
 */
export type HealthSign = 'success' | 'failure' | 'busy' | 'nothing' | 'unknown';

/** All that follows from one kind of failure. */
interface FailureRow {
  /** The error code that the client gets. */
  readonly code: ErrorCode;
  /** Written for the client; `detail` is that of the failure. */
  readonly message: (detail: string) => string;
  /** When the client may try again if the upstream does not say, in milliseconds; `null` leaves the header out. */
  readonly retryAfterMs: number | null;
  /** How the request ends if this is its last failure. */
  readonly outcome: FailureOutcome;
  /** How the attempt stands in the record, in metrics and in the log. */
  readonly result: AttemptResult;
  /** Whether another route may do better: the request is not at fault. */
  readonly mayGoElsewhere: boolean;
  readonly health: HealthSign;
}

/** The ways in which a request ends by its upstream's failure. */
type FailureOutcome = Extract<
  Outcome,
  'upstream_failed' | 'upstream_truncated' | 'first_byte_timeout' | 'idle_timeout' | 'total_timeout'
>;

/** The wait that is suggested when an upstream limits us without saying for how long, in milliseconds. */
const limitedRetryMs = 5_000;

const unreachable = {
  code: 'upstream_unavailable',
  message: () => "The model's provider can't be reached.",
  retryAfterMs: null,
  outcome: 'upstream_failed',
  mayGoElsewhere: true,
} as const;

const timedOut = {
  code: 'upstream_timeout',
  message: () => "The model's provider did not answer in time.",
  retryAfterMs: null,
  result: 'timeout',
  mayGoElsewhere: true,
  health: 'failure',
} as const;

const overloaded = {
  code: 'overloaded',
  message: () => "The model's provider is overloaded. Try again shortly.",
  retryAfterMs: limitedRetryMs,
  outcome: 'upstream_failed',
  mayGoElsewhere: true,
} as const;

const limited = {
  code: 'upstream_rate_limited',
  retryAfterMs: limitedRetryMs,
  outcome: 'upstream_failed',
  result: 'rate_limited',
  mayGoElsewhere: true,
  health: 'busy',
} as const;

const failed = {
  code: 'upstream_error',
  message: (detail: string) => `The model's provider answered with ${detail}.`,
  retryAfterMs: null,
  outcome: 'upstream_failed',
  mayGoElsewhere: true,
} as const;

/** The upstream answered, and the fault is the request's: another upstream would find it, too. */
const requestAtFault = {
  retryAfterMs: null,
  outcome: 'upstream_failed',
  result: 'refused',
  mayGoElsewhere: false,
  health: 'success',
} as const;

const truncated = {
  code: 'upstream_truncated',
  retryAfterMs: null,
  outcome: 'upstream_truncated',
  result: 'truncated',
  mayGoElsewhere: true,
  health: 'failure',
} as const;

/** The one place that says what follows from a failure: a kind is a row. */
export const failures: Readonly<Record<FailureKind, FailureRow>> = {
  unreachable: { ...unreachable, result: 'unreachable', health: 'failure' },
  stale: { ...unreachable, result: 'stale', health: 'nothing' },
  broken: {
    ...truncated,
    message: () => "The connection to the model's provider broke before the answer was whole.",
  },
  first_byte_timeout: { ...timedOut, outcome: 'first_byte_timeout' },
  idle_timeout: { ...timedOut, outcome: 'idle_timeout' },
  total_timeout: { ...timedOut, outcome: 'total_timeout' },
  timed_out_itself: { ...timedOut, outcome: 'upstream_failed' },
  auth: {
    code: 'upstream_auth',
    message: () =>
      "The model's provider does not accept this service's credentials or account. Ask the operator to fix it.",
    retryAfterMs: null,
    outcome: 'upstream_failed',
    result: 'auth',
    mayGoElsewhere: true,
    health: 'failure',
  },
  context_too_long: {
    ...requestAtFault,
    code: 'context_length_exceeded',
    message: () => "The text is longer than the model's maximum context. Shorten the history and try again.",
  },
  rejected: {
    ...requestAtFault,
    code: 'invalid_value',
    message: (detail) => `The model's provider refused the request (${detail}).`,
  },
  rate_limited: {
    ...limited,
    message: () =>
      "The model's provider is limiting this service's requests; your own key is within its limits.",
  },
  cooling: {
    ...limited,
    message: () =>
      "The model's provider is limiting this service's requests, and asked for a pause that is not over.",
  },
  overloaded: { ...overloaded, result: 'overloaded', health: 'busy' },
  unavailable: { ...overloaded, result: 'error', health: 'failure' },
  unserved: { ...failed, result: 'unserved', health: 'nothing' },
  server_error: { ...failed, result: 'error', health: 'failure' },
  reported_error: {
    ...failed,
    message: () => "The model's provider reported an error while it was answering.",
    result: 'error',
    health: 'failure',
  },
  invalid: {
    code: 'upstream_invalid',
    message: (detail) => `The model's provider sent ${detail}.`,
    retryAfterMs: null,
    outcome: 'upstream_failed',
    result: 'invalid',
    mayGoElsewhere: true,
    health: 'failure',
  },
  truncated: {
    ...truncated,
    message: () =>
      "The model's provider ended the answer without finishing it; the text so far is not complete.",
  },
};

/** What the client is told of a failure. */
export function refusalOf({ kind, detail, retryAfterMs }: Failure): Refusal {
  const row = failures[kind];
  const waitMs = row.retryAfterMs === null ? null : (retryAfterMs ?? row.retryAfterMs);
  if (waitMs === null) return refuse(row.code, row.message(detail));
  if (row.code !== 'upstream_rate_limited')
    return refuse(row.code, row.message(detail), { retryAfterMs: waitMs });
  const limit = { source: 'upstream', kind: 'rate', limit: null, retryAfterMs: waitMs } as const;
  return refuse(row.code, row.message(detail), { limit });
}

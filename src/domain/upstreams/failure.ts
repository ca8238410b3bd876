import type { Failure, FailureKind } from '../../protocol/text.ts';
import { refuse } from '../../shared/errors.ts';
import type { ErrorCode, Refusal } from '../../shared/errors.ts';
import type { AttemptResult, Outcome } from '../money/consumption.ts';

/**
 * What an attempt shows of its upstream's health:
 * - `success`, `failure`: counts for the upstream, or against it;
 * - `busy`: the upstream limits requests, and others are tried before it for a while;
 * - `nothing`: neither, though the attempt came to its own end, which a trial request waits for;
 * - `unknown`: neither, because the attempt was stopped from outside.
 */
export type HealthSign = 'success' | 'failure' | 'busy' | 'nothing' | 'unknown';

/** All consequences of one kind of failure. */
interface FailureRow {
  /** The error code that the client gets. */
  readonly code: ErrorCode;
  /** The message for the client; `detail` is the failure's. */
  readonly message: (detail: string) => string;
  /** The default `retry-after` if the upstream gave none, in milliseconds; `null` leaves the header out. */
  readonly retryAfterMs: number | null;
  /** The request's outcome if this is its last failure. */
  readonly outcome: FailureOutcome;
  /** The attempt's result in the record, in metrics and in the log. */
  readonly result: AttemptResult;
  /** Whether another route may succeed, because the request is not at fault. */
  readonly mayGoElsewhere: boolean;
  readonly health: HealthSign;
  /** Whether the client gets the upstream's own words: they are about its request, not about the operator's affairs. */
  readonly showsWords?: true;
}

/** The outcomes of a request whose upstream failed. */
type FailureOutcome = Extract<
  Outcome,
  'upstream_failed' | 'upstream_truncated' | 'first_byte_timeout' | 'idle_timeout' | 'total_timeout'
>;

/** The `retry-after` for a rate limit of the upstream that came without one, in milliseconds. */
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

/** The upstream works, and the request is at fault: another upstream would refuse it, too. */
const requestAtFault = {
  retryAfterMs: null,
  outcome: 'upstream_failed',
  result: 'refused',
  mayGoElsewhere: false,
  health: 'success',
  showsWords: true,
} as const;

const truncated = {
  code: 'upstream_truncated',
  message: () => "The model's provider ended the answer before it was complete.",
  retryAfterMs: null,
  outcome: 'upstream_truncated',
  result: 'truncated',
  mayGoElsewhere: true,
  health: 'failure',
} as const;

const invalid = {
  code: 'upstream_invalid',
  message: (detail: string) => `The model's provider sent ${detail}.`,
  retryAfterMs: null,
  outcome: 'upstream_failed',
  result: 'invalid',
  mayGoElsewhere: true,
  health: 'failure',
} as const;

/** The consequences of every kind of failure, in one table. */
export const failures: Readonly<Record<FailureKind, FailureRow>> = {
  unreachable: { ...unreachable, result: 'unreachable', health: 'failure' },
  unanswered: {
    ...unreachable,
    message: () => "The model's provider closed the connection without an answer.",
    result: 'unanswered',
    health: 'failure',
  },
  stale: { ...unreachable, result: 'stale', health: 'nothing' },
  broken: {
    ...truncated,
    message: () => "The connection to the model's provider broke before the answer was complete.",
  },
  first_byte_timeout: { ...timedOut, outcome: 'first_byte_timeout' },
  // One outcome for both waits before the text: a database may be shared with versions that know no other.
  first_text_timeout: { ...timedOut, outcome: 'first_byte_timeout' },
  idle_timeout: { ...timedOut, outcome: 'idle_timeout' },
  total_timeout: { ...timedOut, outcome: 'total_timeout' },
  unread: {
    ...timedOut,
    message: () => 'The answer was not read within the time that it may take.',
    outcome: 'total_timeout',
    result: 'interrupted',
    mayGoElsewhere: false,
    health: 'unknown',
  },
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
  content_filtered: {
    ...requestAtFault,
    code: 'content_filter',
    message: () => "The model's provider refused the text: its content filter was triggered.",
  },
  rejected: {
    ...requestAtFault,
    code: 'invalid_value',
    message: (detail) => `The model's provider refused the request (${detail}).`,
  },
  // Another route may have the model. If none has, trying again is of no use, which the status of a 502 would hide.
  model_unknown: {
    ...failed,
    code: 'model_not_found',
    message: () => "The model's provider does not have this model.",
    result: 'unserved',
    health: 'nothing',
    showsWords: true,
  },
  rate_limited: {
    ...limited,
    message: () =>
      "The model's provider is limiting this service's requests; your own key is within its limits.",
  },
  cooling: {
    ...limited,
    message: () =>
      "The model's provider is limiting this service's requests and asked for a pause that has not ended.",
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
  invalid,
  oversized_head: { ...invalid, message: () => "The model's provider sent headers that are too large." },
  undecodable: {
    ...invalid,
    message: () => "The model's provider sent compressed data that can't be decoded.",
  },
  cut_coding: truncated,
  truncated,
  unfinished: truncated,
  empty: { ...truncated, message: () => "The model's provider ended the answer before any text." },
};

/** The refusal that a client gets for a failure. */
export function refusalOf({ kind, detail, retryAfterMs, upstreamError }: Failure): Refusal {
  const row = failures[kind];
  const message = row.message(detail);
  const upstream = row.showsWords === true ? upstreamError : null;
  const waitMs = row.retryAfterMs === null ? null : (retryAfterMs ?? row.retryAfterMs);
  if (waitMs === null) return refuse(row.code, message, { upstream });
  if (row.code !== 'upstream_rate_limited') return refuse(row.code, message, { retryAfterMs: waitMs });
  const limit = { source: 'upstream', kind: 'rate', limit: null, retryAfterMs: waitMs } as const;
  return refuse(row.code, message, { limit });
}

/**
 * How far a failure reaches:
 * - `connection`: the whole upstream, and no request is its cause: no connection, or credentials that are not accepted;
 * - `upstream`: the whole upstream, though a request may be its cause;
 * - `model`: the model at that upstream.
 */
export type Reach = 'connection' | 'upstream' | 'model';

/** How far the failure of an attempt at a model reaches, which goes by the model's name at the upstream. */
export function reachOf(
  { kind, upstreamError }: Pick<Failure, 'kind' | 'upstreamError'>,
  model: string,
): Reach {
  if (kind === 'unreachable') return 'connection';
  if (kind !== 'auth' && kind !== 'unavailable') return 'model';
  const { status = null, code, message } = upstreamError ?? {};
  // A key or an account that is not accepted serves no model. A 403 may be a firewall's answer to what one key asks.
  if (status === 401 || status === 402) return 'connection';
  if (`${code ?? ''} ${message ?? ''}`.includes(model)) return 'model';
  return kind === 'auth' && status !== 403 ? 'connection' : 'upstream';
}

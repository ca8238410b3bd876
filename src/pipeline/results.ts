import type { EndOutcome, Outcome } from '../domain/money/consumption.ts';
import type { UpstreamFault } from '../domain/ports/upstreams.ts';
import { failures, refusalOf } from '../domain/upstreams/failure.ts';
import type { AnswerEnding, Failure, Usage } from '../protocol/text.ts';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';

/**
 * Why a running request is stopped from outside; the reason of its abort signal. `crashed`: an error that nothing caught
 * ends the process. `lost`: the claim of the request is not this process's any more.
 */
export type Interruption = 'client_closed' | 'cancelled' | 'drained' | 'crashed' | 'lost';

/** How a request ended. */
export type ExchangeResult =
  /** With the upstream's answer, or with its failure. */
  | AnswerEnding
  | InterruptedResult
  | JoinedResult
  /** Before anything was sent upstream, or in the client's own request. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** By an error in this service. */
  | { readonly kind: 'unexpected' };

/** The end of a request that has not got the answer of another one. */
export type OwnResult = Exclude<ExchangeResult, JoinedResult>;

/** A settled exchange: its result as the client gets it, and what was charged, in nano-USD. */
export interface Settled {
  readonly result: ExchangeResult;
  /** `null` if no record was begun, or if its charge is not booked, as while the database is away. */
  readonly chargeNanos: number | null;
  /** When that was, in seconds since 1970. */
  readonly endedAtSeconds: number;
}

/** The request was stopped from outside before its answer was complete; `usage` is what was reported by then. */
interface InterruptedResult {
  readonly kind: 'interrupted';
  readonly interruption: Interruption;
  readonly usage: Usage | null;
}

/** The client got the answer of another request of its key; `isReplay` says that it had ended before. */
interface JoinedResult {
  readonly kind: 'joined';
  readonly isReplay: boolean;
}

/** How an attempt at an upstream ends. */
export type AttemptEnding = AnswerEnding | InterruptedResult;

/** How an attempt without an answer ends. */
export type FailedEnding = Exclude<AttemptEnding, { readonly kind: 'finished' }>;

/** The result of a request that was refused before anything was sent upstream. */
export function refused(refusal: Refusal): ExchangeResult {
  return { kind: 'refused', refusal };
}

/** The request is over because its signal was raised. */
export function interruptedBy(signal: AbortSignal, usage: Usage | null): InterruptedResult {
  return { kind: 'interrupted', interruption: signal.reason as Interruption, usage };
}

/** The connection to the upstream failed, or the request's own signal ended it. */
export function endingOfFault(
  { fault, cause }: UpstreamFault,
  signal: AbortSignal,
  usage: Usage | null,
): FailedEnding {
  if (fault === 'interrupted') return interruptedBy(signal, usage);
  const failure: Failure = {
    kind: fault,
    detail: '',
    retryAfterMs: null,
    cause: cause ?? null,
    upstreamError: null,
  };
  return { kind: 'failed', failure, usage };
}

/** How the request ended, as logs and metrics say it. */
export function endOf(result: ExchangeResult): EndOutcome {
  if (result.kind === 'joined') return result.isReplay ? 'replayed' : 'joined';
  return outcomeOf(result);
}

/** The request's outcome in the record. */
export function outcomeOf(result: OwnResult): Outcome {
  switch (result.kind) {
    case 'finished':
      return result.reason === 'stop' ? 'completed' : 'incomplete';
    case 'failed':
      return failures[result.failure.kind].outcome;
    case 'interrupted':
      return result.interruption;
    case 'refused':
      return 'refused';
    case 'unexpected':
      return 'server_error';
  }
}

const interruptions: Readonly<Record<Interruption, Refusal>> = {
  client_closed: refuse('server_error', 'The client disconnected before the answer was complete.'),
  cancelled: refuse('request_cancelled', 'The request was cancelled.'),
  drained: refuse('draining', 'This server shut down before the answer was complete.'),
  crashed: refuse('server_error', 'This server failed before the answer was complete.'),
  lost: refuse(
    'server_error',
    'This server was taken for dead before the answer was complete, and another one may run the request. Send it again.',
  ),
};

/** An error in this service: its details are for the log, not for the client. */
const unexpected = refuse('server_error', 'The server had an error while processing the request.');

/** What the client gets instead of a finished answer; `null` for a finished one. */
export function refusalOfResult(result: ExchangeResult): Refusal | null {
  switch (result.kind) {
    case 'finished':
    case 'joined':
      return null;
    case 'failed':
      return refusalOf(result.failure);
    case 'interrupted':
      return interruptions[result.interruption];
    case 'refused':
      return result.refusal;
    case 'unexpected':
      return unexpected;
  }
}

/** The usage that the upstream reported by the end; `null` if it reported none. */
export function usageOf(result: ExchangeResult): Usage | null {
  const hasNone = result.kind === 'refused' || result.kind === 'unexpected' || result.kind === 'joined';
  return hasNone ? null : result.usage;
}

/** The cause of a failure, and what the upstream said of it, for the operator alone. */
export function wordsOf(result: ExchangeResult): Pick<Failure, 'cause' | 'upstreamError'> {
  if (result.kind === 'refused') return { cause: result.refusal.cause, upstreamError: null };
  if (result.kind !== 'failed') return { cause: null, upstreamError: null };
  const { cause, upstreamError } = result.failure;
  return { cause, upstreamError };
}

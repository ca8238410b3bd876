import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { AnswerEnding, Failure, Usage } from '../protocol/text.ts';
import type { Outcome } from '../domain/consumption.ts';
import { failures, refusalOf } from '../domain/failure.ts';
import type { Interruption } from '../domain/interruption.ts';
import type { UpstreamFault } from '../domain/ports/upstreams.ts';

/** How a request ended. */
export type ExchangeResult =
  /** With the upstream's answer, or with its failure. */
  | AnswerEnding
  | InterruptedResult
  /** Before anything was sent upstream, or in the client's own request. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** By a fault of our own. */
  | { readonly kind: 'unexpected' };

/** The request was stopped from outside before its answer was whole; `usage` is what was seen by then. */
interface InterruptedResult {
  readonly kind: 'interrupted';
  readonly interruption: Interruption;
  readonly usage: Usage | null;
}

/** How an attempt at an upstream ends. */
export type AttemptEnding = AnswerEnding | InterruptedResult;

/** How an attempt ends that brings no answer. */
export type FailedEnding = Exclude<AttemptEnding, { readonly kind: 'finished' }>;

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
  const failure: Failure = { kind: fault, detail: '', retryAfterMs: null, cause: cause ?? null };
  return { kind: 'failed', failure, usage };
}

/** How the request stands in the record. */
export function outcomeOf(result: ExchangeResult): Outcome {
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
  client_closed: refuse('server_error', 'The client left before the answer was whole.'),
  cancelled: refuse('server_error', 'The request was cancelled.'),
  drained: refuse('draining', 'This server is shutting down before the answer was whole.'),
  crashed: refuse('server_error', 'This server failed before the answer was whole.'),
};

/** A fault of our own: the client learns only that it happened. */
const unexpected = refuse('server_error', 'The server had an error while processing the request.');

/** What the client gets instead of a finished answer; `null` for a finished one. */
export function refusalOfResult(result: ExchangeResult): Refusal | null {
  switch (result.kind) {
    case 'finished':
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

/** What the upstream counted by the end; `null` when it did not say. */
export function usageOf(result: ExchangeResult): Usage | null {
  return result.kind === 'refused' || result.kind === 'unexpected' ? null : result.usage;
}

/** What lies behind a failure, for the operator alone. */
export function causeOf(result: ExchangeResult): string | null {
  return result.kind === 'failed' ? result.failure.cause : null;
}

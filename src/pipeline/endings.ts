import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Interruption } from '../domain/interruption.ts';
import type { UpstreamFault } from '../domain/ports/upstreams.ts';
import type { FailureEvent, FinishEvent, Usage } from '../protocol/text.ts';
import type { Ending } from './exchange.ts';

export type FailedEnding = Extract<Ending, { readonly refusal: Refusal }>;

/** The request was refused before anything was sent upstream. */
export function refusedEnding(refusal: Refusal): FailedEnding {
  return { outcome: 'refused', refusal, usage: null };
}

/** The upstream finished its answer: whole, or cut short by a limit that it names. */
export function finishedEnding(finish: FinishEvent): Ending {
  return { outcome: finish.reason === 'stop' ? 'completed' : 'incomplete', finish };
}

/** The upstream's answer failed, or ended without an ending. */
export function failedEnding({ refusal, usage }: Omit<FailureEvent, 'type'>): FailedEnding {
  const outcome = refusal.code === 'upstream_truncated' ? 'upstream_truncated' : 'upstream_failed';
  return { outcome, refusal, usage };
}

/** The connection to the upstream failed, or somebody interrupted the request; `usage` is what was seen by then. */
export function faultEnding(
  { fault, cause }: UpstreamFault,
  signal: AbortSignal,
  usage: Usage | null,
): FailedEnding {
  if (fault === 'interrupted') return interruptedEnding(signal.reason as Interruption, usage);
  const ending = { ...outcomeOf(fault), usage };
  return cause === undefined ? ending : { ...ending, cause };
}

/** Somebody stopped the request before its answer was whole. */
export function interruptedEnding(reason: Interruption, usage: Usage | null): FailedEnding {
  switch (reason) {
    case 'client_closed':
      return {
        outcome: reason,
        refusal: refuse('server_error', 'The client left before the answer was whole.'),
        usage,
      };
    case 'cancelled':
      return { outcome: reason, refusal: refuse('server_error', 'The request was cancelled.'), usage };
    case 'drained':
      return {
        outcome: reason,
        refusal: refuse('draining', 'This server is shutting down before the answer was whole.'),
        usage,
      };
    case 'crashed':
      return {
        outcome: reason,
        refusal: refuse('server_error', 'This server failed before the answer was whole.'),
        usage,
      };
  }
}

/** A fault of our own. The client learns nothing of it but that it happened. */
export function unexpectedEnding(): FailedEnding {
  const refusal = refuse('server_error', 'The server had an error while processing the request.');
  return { outcome: 'server_error', refusal, usage: null };
}

function outcomeOf(
  fault: Exclude<UpstreamFault['fault'], 'interrupted'>,
): Pick<FailedEnding, 'outcome' | 'refusal'> {
  switch (fault) {
    case 'unreachable':
    case 'stale':
      return {
        outcome: 'upstream_failed',
        refusal: refuse('upstream_unavailable', "The model's provider can't be reached."),
      };
    case 'broken':
      return {
        outcome: 'upstream_truncated',
        refusal: refuse(
          'upstream_truncated',
          "The connection to the model's provider broke before the answer was whole.",
        ),
      };
    case 'first_byte_timeout':
    case 'idle_timeout':
    case 'total_timeout':
      return {
        outcome: fault,
        refusal: refuse('upstream_timeout', "The model's provider did not answer in time."),
      };
  }
}

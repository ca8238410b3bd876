import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Interruption, UpstreamFault } from '../domain/ports.ts';
import type { FailureEvent, FinishEvent } from '../protocol/text.ts';
import type { Ending } from './exchange.ts';

/** The request was refused before anything was sent upstream. */
export function refusedEnding(refusal: Refusal): Ending {
  return { outcome: 'refused', refusal, usage: null };
}

/** The upstream finished its answer: whole, or cut short by a limit that it names. */
export function finishedEnding(finish: FinishEvent): Ending {
  return { outcome: finish.reason === 'stop' ? 'completed' : 'incomplete', finish };
}

/** The upstream's answer failed, or ended without an ending. */
export function failedEnding({ refusal, usage }: Omit<FailureEvent, 'type'>): Ending {
  const outcome = refusal.refusal === 'upstream_truncated' ? 'upstream_truncated' : 'upstream_failed';
  return { outcome, refusal, usage };
}

/** The connection to the upstream failed, or somebody interrupted the request. */
export function faultEnding({ fault }: UpstreamFault, signal: AbortSignal): Ending {
  switch (fault) {
    case 'interrupted':
      return interruptedEnding(signal.reason as Interruption);
    case 'unreachable':
      return failed(
        'upstream_failed',
        refuse('upstream_unavailable', "The model's provider can't be reached."),
      );
    case 'broken':
      return failed(
        'upstream_truncated',
        refuse(
          'upstream_truncated',
          "The connection to the model's provider broke before the answer was whole.",
        ),
      );
    case 'first_byte_timeout':
    case 'idle_timeout':
    case 'total_timeout':
      return failed(fault, refuse('upstream_timeout', "The model's provider did not answer in time."));
  }
}

export function interruptedEnding(reason: Interruption): Ending {
  switch (reason) {
    case 'client_closed':
      return failed(reason, refuse('server_error', 'The client left before the answer was whole.'));
    case 'cancelled':
      return failed(reason, refuse('server_error', 'The request was cancelled.'));
    case 'drained':
      return failed(reason, refuse('draining', 'This server is shutting down before the answer was whole.'));
  }
}

/** A fault of our own. The client learns nothing of it but that it happened. */
export function unexpectedEnding(): Ending {
  return failed(
    'server_error',
    refuse('server_error', 'The server had an error while processing the request.'),
  );
}

function failed(outcome: Exclude<Ending['outcome'], 'completed' | 'incomplete'>, refusal: Refusal): Ending {
  return { outcome, refusal, usage: null };
}

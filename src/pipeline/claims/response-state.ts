import { writeResponseState } from '../../protocol/responses/write-answer.ts';
import { createAnswerWriter, identityOf } from '../delivery/send-answer.ts';
import { refusalOfResult } from '../results.ts';
import type { ClaimedRun } from './claimed-run.ts';

/**
 * The `response` object of a run as it is now, as JSON: in progress, as its answer has ended, cancelled, or failed. `null` where
 * it is none of the Responses protocol, or was not begun.
 */
export function responseStateOf({ asked, answer, settled }: ClaimedRun): string | null {
  const responses = asked?.request.responses ?? null;
  if (asked === null || responses === null) return null;
  const identity = identityOf(asked.request, asked);
  if (settled === null) return writeResponseState(identity, responses, 'in_progress');
  const { result, chargeNanos, endedAtSeconds } = settled;
  if (result.kind === 'finished') {
    const { text } = answer;
    if (text === null) return null;
    const writer = createAnswerWriter({ ...asked.request, stream: false }, asked, null);
    writer.delta(text);
    return writer.finish(result, endedAtSeconds, chargeNanos);
  }
  const isCancelled = result.kind === 'interrupted' && result.interruption === 'cancelled';
  const failure = isCancelled ? 'cancelled' : refusalOfResult(result);
  return failure === null ? null : writeResponseState(identity, responses, failure);
}

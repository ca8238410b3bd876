import { writeResponseState } from '../../protocol/responses/write-answer.ts';
import { createAnswerWriter, identityOf } from '../delivery/send-answer.ts';
import { refusalOfResult } from '../results.ts';
import type { Ports } from '../ports.ts';
import type { ClaimedRun } from './claimed-run.ts';
import type { RunningClaims } from './running-claims.ts';

/** The run of a request of a key in the Responses protocol that has begun: the client may have got its id. */
export function findResponse(
  keyId: string,
  requestId: string,
  claims: Pick<RunningClaims, 'findRequest'>,
): ClaimedRun | undefined {
  const run = claims.findRequest(keyId, requestId);
  return (run?.asked?.request.responses ?? null) === null ? undefined : run;
}

/**
 * The `response` object of a run as it is now, as JSON: in progress, as its answer has ended, cancelled, or failed. `null` where
 * its answer is not kept.
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

/** Stops a run for all who wait for it; resolves when that is done, or it has ended before. */
export async function cancelRun(run: ClaimedRun, { inFlight }: Pick<Ports, 'inFlight'>): Promise<void> {
  if (run.settled !== null) return;
  await inFlight.cancel(run.requestId, run.keyId);
  await run.over;
}

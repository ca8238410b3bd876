import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { ApiKey } from '../../domain/keys/api-key.ts';
import { createAnswerWriter } from '../delivery/send-answer.ts';
import type { Exchange } from '../exchange.ts';
import { interruptedBy, refused } from '../results.ts';
import type { ExchangeResult } from '../results.ts';
import { tooLongToJoin } from './claim-refusals.ts';
import type { AnswerSource, ClaimedRun } from './claimed-run.ts';
import { numbersFrom } from './event-place.ts';
import type { EventPlace } from './event-place.ts';

/** A client that wants the answer of a run. */
export interface Joiner {
  readonly key: ApiKey;
  /** The event behind which it wants the answer to go on; `null` for all of it. */
  readonly place: EventPlace | null;
}

/** Waits until a run can be joined, or has come to nothing, or a client does not wait any more. */
export async function untilKnown(run: ClaimedRun, left: Promise<void>): Promise<void> {
  const waits = { isOver: false };
  void left.then(() => (waits.isOver = true));
  // One that was stopped meanwhile is waited for once more.
  while (!waits.isOver && (run.phase === 'asking' || run.phase === 'stopping'))
    await Promise.race([run.known, left]);
}

/** Waits until a run can be joined, or came to nothing; returns how the client's own request ends if it is stopped first. */
export async function waitForRun(
  run: ClaimedRun,
  { interruption }: Exchange,
): Promise<ExchangeResult | null> {
  const { signal } = interruption;
  await untilKnown(run, raised(signal));
  return signal.aborted ? interruptedBy(signal, null) : null;
}

/**
 * Sends a client the answer of a run that is known, which takes no slot, and costs nothing; resolves with how its own request has
 * ended. `asked` is what the run asks, or the same as a stream.
 */
export async function joinAnswer(
  run: ClaimedRun,
  asked: AnswerSource,
  joiner: Joiner,
  exchange: Exchange,
): Promise<ExchangeResult> {
  const { answer, requestId } = run;
  if (!answer.isWhole) return refused(tooLongToJoin());
  const isReplay = run.phase === 'ended';
  const refusal = beginJoined(asked, requestId, joiner, exchange);
  if (refusal !== null) return refused(refusal);
  const { signal } = exchange.interruption;
  if (await answer.listen(exchange.delivery, signal)) return { kind: 'joined', isReplay };
  // Else it was cut off, which its connection shows later.
  return signal.aborted ? interruptedBy(signal, null) : cutOff;
}

/** Begins the answer of another request to a client; returns why there is none behind the event that it names. */
export function beginJoined(
  asked: AnswerSource,
  requestId: string,
  { key, place }: Joiner,
  exchange: Exchange,
): Refusal | null {
  const numbers = numbersFrom(requestId, asked, place);
  if (isRefusal(numbers)) return numbers;
  exchange.stage = { stage: 'joined', key, asked, requestId };
  exchange.delivery.begin(createAnswerWriter(asked.request, asked, numbers));
  exchange.delivery.permit();
  return null;
}

/** The end of a client that was too far behind an answer that is not kept. */
const cutOff: ExchangeResult = { kind: 'interrupted', interruption: 'client_closed', usage: null };

/** Resolves when a signal is raised. */
function raised(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

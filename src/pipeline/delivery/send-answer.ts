import type { Clock } from '../../domain/ports/clock.ts';
import type { AnswerIdentity, AnswerWriter } from '../../protocol/answer-writer.ts';
import { createChatResultWriter, createChatStreamWriter } from '../../protocol/chat/write-answer.ts';
import {
  createResponsesResultWriter,
  createResponsesStreamWriter,
} from '../../protocol/responses/write-answer.ts';
import type { TextRequest } from '../../protocol/text.ts';
import type { OpenedAnswer } from '../attempts/first-part.ts';
import type { ReceivedAnswer } from '../attempts/received-answer.ts';
import type { Exchange } from '../exchange.ts';
import { disconnectRuleOf } from '../money/charge.ts';
import type { Ports } from '../ports.ts';
import { refusalOfResult } from '../results.ts';
import type { AttemptEnding, Settled } from '../results.ts';
import type { Delivery } from './delivery.ts';

/** Chooses the writer for the client's protocol and mode: a request with Responses extras is a Responses request. */
export function createAnswerWriter(
  { stream, includeUsage, responses, shownCharge, model }: TextRequest,
  { id, arrivedAtMs }: Pick<Exchange, 'id' | 'arrivedAtMs'>,
): AnswerWriter {
  const identity: AnswerIdentity = { id, createdAtSeconds: Math.floor(arrivedAtMs / 1_000), model };
  if (responses === null)
    return stream
      ? createChatStreamWriter(identity, includeUsage, shownCharge)
      : createChatResultWriter(identity, shownCharge);
  return stream
    ? createResponsesStreamWriter(identity, responses, shownCharge)
    : createResponsesResultWriter(identity, responses, shownCharge);
}

/**
 * Sends an answer's text to its clients as it is read, and returns how it ended. Each read becomes one write, at the
 * moment of its arrival while all clients keep up; the slowest of them slows the upstream. The last frames are not sent
 * here but after the settlement. `onSlow` is called when a client does not keep up for the first time.
 */
export async function rewrite(
  answer: OpenedAnswer,
  received: ReceivedAnswer,
  { deliveries }: Pick<Exchange, 'deliveries'>,
  { clock, fastPath }: Pick<Ports, 'clock' | 'fastPath'>,
  onSlow: () => void,
): Promise<AttemptEnding> {
  let hasWaited = false;
  /** Returns whether more may be sent without a wait. */
  const send = (deltas: readonly string[]): boolean => {
    // After the last client has disconnected, the answer is read on for its usage alone.
    if (deliveries.every(({ hasLeft }) => hasLeft)) return true;
    received.add(deltas, clock.monotonicMs());
    let keepUp = fastPath;
    for (const delivery of deliveries) keepUp = delivery.send(deltas) && keepUp;
    return keepUp;
  };
  const { first } = answer;
  if (first.deltas.length > 0) send(first.deltas);
  let { ending } = first;
  for (;;) {
    for (const delivery of deliveries) {
      const drained = delivery.drained();
      if (drained === null) continue;
      if (!hasWaited) onSlow();
      hasWaited = true;
      await drained;
    }
    if (ending !== null) break;
    ending = await answer.readOn(send);
  }
  if (ending.kind === 'finished') for (const delivery of deliveries) delivery.open();
  return ending;
}

/** How long an answer is still read for its usage after its last client disconnected, in milliseconds. */
const maxReadOnMs = 30_000;

/**
 * Stops the request when its last client disconnects, which saves the cost of the unwritten rest of the answer. On a
 * `drain` route, an answer that has begun is read on for its usage instead: some upstreams bill an aborted call in
 * full, and the charge then matches their bill. The returned function cancels the wait.
 */
export function watchDisconnect(
  exchange: Pick<Exchange, 'deliveries' | 'interruption' | 'stage'>,
  clock: Clock,
): () => void {
  let cancel: (() => void) | null = null;
  const stop = (): void => exchange.interruption.abort('client_closed');
  for (const delivery of exchange.deliveries)
    delivery.onLeft(() => {
      if (exchange.deliveries.some(({ hasLeft }) => !hasLeft)) return;
      if (isReadOn(exchange)) cancel = clock.schedule(maxReadOnMs, stop);
      else stop();
    });
  return () => cancel?.();
}

function isReadOn({ stage }: Pick<Exchange, 'stage'>): boolean {
  if (stage.stage !== 'recorded' || stage.work.kind !== 'text') return false;
  const { request, received, routes } = stage.work;
  const hasBegun = request.stream && received.text.chars > 0;
  return hasBegun && disconnectRuleOf(routes, stage.attempts.upstream) === 'drain';
}

/**
 * Sends the last bytes of a settled exchange: the end of an answer, or an error. Resolves when they are written, so
 * that a server that shuts down does not close the connection before that.
 */
export async function conclude(
  settled: Settled,
  { deliveries }: Pick<Exchange, 'deliveries'>,
): Promise<void> {
  await Promise.all(deliveries.map((delivery) => end(delivery, settled)));
}

async function end(delivery: Delivery, { result, chargeNanos }: Settled): Promise<void> {
  if (delivery.hasLeft) return delivery.abandon();
  if (delivery.isPassing) return delivery.endPassing();
  if (result.kind === 'finished') return delivery.finish(result, chargeNanos);
  const refusal = refusalOfResult(result);
  if (refusal !== null) return delivery.fail(refusal, chargeNanos);
}

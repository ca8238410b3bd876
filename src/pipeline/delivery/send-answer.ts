import type { AnswerIdentity, AnswerWriter, EventNumbers } from '../../protocol/answer-writer.ts';
import { createChatResultWriter, createChatStreamWriter } from '../../protocol/chat/write-answer.ts';
import {
  createResponsesResultWriter,
  createResponsesStreamWriter,
} from '../../protocol/responses/write-answer.ts';
import type { TextRequest } from '../../protocol/text.ts';
import type { OpenedAnswer } from '../attempts/first-part.ts';
import type { ReceivedAnswer } from '../attempts/received-answer.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports } from '../ports.ts';
import type { AttemptEnding, Settled } from '../results.ts';
import type { Delivery } from './delivery.ts';

/** What the ids in an answer are made from, beside its model. */
type Arrived = Pick<Exchange, 'id' | 'arrivedAtMs'>;

/**
 * Chooses the writer for the client's protocol and mode: a request with Responses extras is a Responses request. `numbers` are
 * those of the events of a stream that a client may go on with; `null` for all others.
 */
export function createAnswerWriter(
  request: Omit<TextRequest, 'turns'>,
  arrived: Arrived,
  numbers: EventNumbers | null,
): AnswerWriter {
  const { stream, includeUsage, responses, shownCharge } = request;
  const identity = identityOf(request, arrived);
  if (responses === null)
    return stream
      ? createChatStreamWriter(identity, includeUsage, shownCharge, numbers)
      : createChatResultWriter(identity, shownCharge);
  return stream
    ? createResponsesStreamWriter(identity, responses, shownCharge, numbers)
    : createResponsesResultWriter(identity, responses, shownCharge);
}

/** What the ids in an answer are made from. */
export function identityOf(
  { model }: Pick<TextRequest, 'model'>,
  { id, arrivedAtMs }: Arrived,
): AnswerIdentity {
  return { id, createdAtSeconds: Math.floor(arrivedAtMs / 1_000), model };
}

/** Those who get an answer: a single client, or all clients of a claimed request. */
type Audience = Pick<Delivery, 'hasLeft' | 'send' | 'drained' | 'open'>;

/**
 * Sends an answer's text as it is read, and returns how it ended. Each read becomes one write, at the moment of its arrival while
 * the client keeps up; one that does not slows the upstream. The last frames are not sent here but after the settlement.
 * `onSlow` is called when the client does not keep up for the first time.
 */
export async function rewrite(
  answer: OpenedAnswer,
  received: ReceivedAnswer,
  { delivery, claim }: Pick<Exchange, 'delivery' | 'claim'>,
  { clock, fastPath }: Pick<Ports, 'clock' | 'fastPath'>,
  onSlow: () => void,
): Promise<AttemptEnding> {
  const audience: Audience = claim?.answer ?? delivery;
  let hasWaited = false;
  /** Returns whether more may be sent without a wait. */
  const send = (deltas: readonly string[]): boolean => {
    // After its client has disconnected, the answer is read on for its usage alone.
    if (audience.hasLeft) return true;
    received.add(deltas, clock.monotonicMs());
    return audience.send(deltas) && fastPath;
  };
  const { first } = answer;
  if (first.deltas.length > 0) send(first.deltas);
  let { ending } = first;
  for (;;) {
    const drained = audience.drained();
    if (drained !== null) {
      if (!hasWaited) onSlow();
      hasWaited = true;
      await drained;
    }
    if (ending !== null) break;
    ending = await answer.readOn(send);
  }
  if (ending.kind === 'finished') audience.open();
  return ending;
}

/**
 * Sends the last bytes of a settled exchange: the end of an answer, or an error. Resolves when they are written, so
 * that a server that shuts down does not close the connection before that.
 */
export async function conclude(
  settled: Settled,
  { delivery, claim }: Pick<Exchange, 'delivery' | 'claim'>,
): Promise<void> {
  const isShared = claim !== null && claim.asked !== null;
  if (isShared) await claim.conclude(settled);
  // A client that has joined has its end already, and so has one whose connection broke while that was sent.
  if (!delivery.hasEnded) await delivery.conclude(settled);
}

import type { AnswerIdentity, AnswerWriter } from '../../protocol/answer-writer.ts';
import { createChatResultWriter, createChatStreamWriter } from '../../protocol/chat/write-answer.ts';
import {
  createResponsesResultWriter,
  createResponsesStreamWriter,
} from '../../protocol/responses/write-answer.ts';
import type { TextRequest } from '../../protocol/text.ts';
import type { Exchange } from '../exchange.ts';

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

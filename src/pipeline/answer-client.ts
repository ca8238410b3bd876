import { statusOf } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { jsonType } from '../protocol/answer-writer.ts';
import type { AnswerIdentity, AnswerWriter } from '../protocol/answer-writer.ts';
import { createChatResultWriter } from '../protocol/chat/write-result.ts';
import { createChatStreamWriter } from '../protocol/chat/write-stream.ts';
import { createResponsesResultWriter } from '../protocol/responses/write-result.ts';
import { createResponsesStreamWriter } from '../protocol/responses/write-stream.ts';
import type { TextRequest } from '../protocol/text.ts';
import { writeRefusal } from '../protocol/write-refusal.ts';
import type { AnswerHead } from './client-connection.ts';
import type { Ending, Exchange, Ports } from './exchange.ts';

/** Chooses the writer for the client's protocol and mode. */
export function openAnswer(request: TextRequest, exchange: Exchange): AnswerWriter {
  const identity: AnswerIdentity = {
    id: exchange.id,
    createdAtSeconds: Math.floor(exchange.arrivedAt / 1_000),
    model: request.model,
  };
  const writer = createWriter(request, identity);
  exchange.notes.writer = writer;
  return writer;
}

/** Sends a part of a stream; the first one brings the head with it. Waits while the client can't take more. */
export async function deliver(
  text: string,
  writer: AnswerWriter,
  exchange: Exchange,
  ports: Ports,
): Promise<void> {
  const { client, notes, interruption } = exchange;
  if (!notes.streamOpened) {
    client.open(headOf(exchange, 200, writer.contentType));
    notes.streamOpened = true;
    ports.telemetry.streamOpened(exchange.protocol);
  }
  if (notes.firstTextMs !== null) notes.firstTextSentMs ??= ports.clock.monotonicMs();
  notes.sending = true;
  await client.send(text, interruption.signal);
  notes.sending = false;
  notes.sentMs = ports.clock.monotonicMs();
}

/**
 * Sends the last bytes of an exchange that is settled: the end of an answer, or an error. Resolves when they are
 * out, so that a server that shuts down does not close the connection under them.
 */
export async function conclude(ending: Ending, exchange: Exchange, ports: Ports): Promise<void> {
  const { client, notes } = exchange;
  if (ending.outcome === 'client_closed') return;
  if (notes.passedStatus !== null) return notes.passedWhole ? client.end('') : client.tearDown('');
  if ('refusal' in ending) return concludeRefused(ending.refusal, exchange);
  if (notes.writer === null) throw new Error('an answer without a writer');
  const last = notes.writer.finish(ending.finish, Math.floor(ports.clock.now() / 1_000));
  return notes.streamOpened
    ? client.end(last)
    : client.answer(headOf(exchange, 200, notes.writer.contentType), last);
}

/** Once a stream has begun the status is spent, and the failure goes out in the protocol's own way. */
async function concludeRefused(refusal: Refusal, exchange: Exchange): Promise<void> {
  const { client, notes } = exchange;
  if (!notes.streamOpened || notes.writer === null) {
    const head = headOf(exchange, statusOf(refusal.code), jsonType, refusal);
    return client.answer({ ...head, isStream: false }, writeRefusal(refusal));
  }
  const last = notes.writer.fail(refusal);
  return notes.writer.tearDownOnFailure ? client.tearDown(last) : client.end(last);
}

function headOf(
  { notes }: Exchange,
  status: number,
  contentType: string,
  refusal: Refusal | null = null,
): AnswerHead {
  const { stream: isStream, standing, limits, balanceNanos, stripped } = notes;
  return { status, contentType, isStream, standing, limits, balanceNanos, stripped, refusal };
}

/** A request with extras of its own is a Responses request; the other protocol has none. */
function createWriter(
  { stream, includeUsage, responses }: TextRequest,
  identity: AnswerIdentity,
): AnswerWriter {
  if (responses === null)
    return stream ? createChatStreamWriter(identity, includeUsage) : createChatResultWriter(identity);
  return stream
    ? createResponsesStreamWriter(identity, responses)
    : createResponsesResultWriter(identity, responses);
}

import { isRefusal } from '../shared/errors.ts';
import { chatDialect } from '../protocol/upstream/chat.ts';
import { invalidAnswer } from '../protocol/upstream/chat-frames.ts';
import type { UpstreamReader } from '../protocol/upstream/dialect.ts';
import type { UpstreamAnswer } from '../domain/ports.ts';
import type { AnswerWriter } from '../protocol/answer-writer.ts';
import type { TextEvent } from '../protocol/text.ts';
import type { Refusal } from '../shared/errors.ts';
import { deliver } from './answer-client.ts';
import { failedEnding, faultEnding, finishedEnding } from './endings.ts';
import type { Ending, Exchange, Ports } from './exchange.ts';

/**
 * Reads the upstream's answer, writes its text in the client's protocol, and returns how it ended. The last
 * frames are left to the end of the exchange: they go out once the settlement is committed.
 */
export async function rewrite(
  answer: UpstreamAnswer,
  writer: AnswerWriter,
  exchange: Exchange,
  ports: Ports,
): Promise<Ending> {
  const reader = readerFor(answer.contentType);
  if (isRefusal(reader)) return failedEnding({ refusal: reader, usage: null });
  for (;;) {
    const part = await answer.read();
    if (part !== null && 'fault' in part) return faultEnding(part, exchange.interruption.signal);
    const events = part === null ? reader.end() : reader.push(part);
    const ending = await passOn(events, writer, exchange, ports);
    if (ending !== null) return ending;
  }
}

/** The body says what it is: some upstreams answer a stream request with one object, and the reverse. */
function readerFor(contentType: string): UpstreamReader | Refusal {
  if (contentType.startsWith('text/event-stream')) return chatDialect.createStreamReader();
  if (/^application\/([\w.-]+\+)?json\b/.test(contentType)) return chatDialect.createResultReader();
  return invalidAnswer('neither JSON nor an event stream');
}

/** One read's events become one write. */
async function passOn(
  events: readonly TextEvent[],
  writer: AnswerWriter,
  exchange: Exchange,
  ports: Ports,
): Promise<Ending | null> {
  let text = '';
  let ending: Ending | null = null;
  for (const event of events) {
    if (event.type === 'delta') text += writer.delta(event.text);
    else ending = event.type === 'finish' ? finishedEnding(event) : failedEnding(event);
  }
  if (events.length > 0) exchange.notes.firstByteMs ??= ports.clock.monotonicMs();
  if (text !== '') await deliver(text, exchange, ports);
  return ending;
}

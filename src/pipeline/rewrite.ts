import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { UpstreamAnswer } from '../domain/ports.ts';
import type { AnswerWriter } from '../protocol/answer-writer.ts';
import { createOrderLaw } from '../protocol/order-law.ts';
import type { TextEvent } from '../protocol/text.ts';
import type { Dialect, UpstreamReader } from '../protocol/upstream/dialect.ts';
import { invalidAnswer } from '../protocol/upstream/failures.ts';
import { deliver } from './answer-client.ts';
import { failedEnding, faultEnding, finishedEnding } from './endings.ts';
import type { Ending, Exchange, Ports } from './exchange.ts';

/**
 * Reads the upstream's answer, writes its text in the client's protocol, and returns how it ended. What one read
 * brings is one write. The last frames are left to the end of the exchange: they go out once it is settled.
 */
export async function rewrite(
  answer: UpstreamAnswer,
  dialect: Dialect,
  writer: AnswerWriter,
  exchange: Exchange,
  ports: Ports,
): Promise<Ending> {
  const reader = readerFor(answer.contentType, dialect);
  if (isRefusal(reader)) return failedEnding({ refusal: reader, usage: null });
  const law = createOrderLaw();
  for (;;) {
    const part = await answer.read();
    if (part !== null && 'fault' in part)
      return faultEnding(part, exchange.interruption.signal, reader.usage);
    const events = part === null ? reader.end() : reader.push(part);
    let text = '';
    for (const event of events) {
      law.check(event);
      if (event.type === 'delta') text += writeDelta(event.text, writer, exchange, ports);
    }
    const ending = endingOf(events.at(-1));
    const opens = ending?.outcome === 'completed' || ending?.outcome === 'incomplete';
    if (text !== '' || (opens && exchange.notes.stream)) await deliver(text, writer, exchange, ports);
    if (ending !== null) return ending;
  }
}

/** The body says what it is: some upstreams answer a stream request with one object, and the reverse. */
function readerFor(contentType: string, dialect: Dialect): UpstreamReader | Refusal {
  if (contentType.startsWith('text/event-stream')) return dialect.createStreamReader();
  if (/^application\/([\w.-]+\+)?json\b/.test(contentType)) return dialect.createResultReader();
  return invalidAnswer('neither JSON nor an event stream');
}

function writeDelta(text: string, writer: AnswerWriter, { notes }: Exchange, { clock }: Ports): string {
  notes.firstTextMs ??= clock.monotonicMs();
  return writer.delta(text);
}

function endingOf(last: TextEvent | undefined): Ending | null {
  if (last === undefined || last.type === 'delta') return null;
  return last.type === 'finish' ? finishedEnding(last) : failedEnding(last);
}

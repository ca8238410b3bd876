import type { UpstreamAnswer } from '../domain/ports.ts';
import type { Route } from '../domain/routing.ts';
import type { AnswerWriter } from '../protocol/answer-writer.ts';
import { createOrderLaw } from '../protocol/order-law.ts';
import type { TextEvent } from '../protocol/text.ts';
import { createReader } from '../protocol/upstream/read-answer.ts';
import { deliver } from './answer-client.ts';
import { dialects } from './dialects.ts';
import { failedEnding, faultEnding, finishedEnding } from './endings.ts';
import type { Ending, Exchange, Ports } from './exchange.ts';

/**
 * Reads the upstream's answer, writes its text in the client's protocol, and returns how it ended. What one read
 * brings is one write. The last frames are left to the end of the exchange: they go out once it is settled.
 */
export async function rewrite(
  answer: UpstreamAnswer,
  chosen: Route,
  writer: AnswerWriter,
  exchange: Exchange,
  ports: Ports,
): Promise<Ending> {
  const { notes } = exchange;
  const { contentType } = answer;
  const { dialect, finishReason } = chosen.speech;
  const reader = createReader(dialects[dialect], { contentType, streamAsked: notes.stream, finishReason });
  notes.violations = reader.answer.violations;
  const law = createOrderLaw();
  for (;;) {
    const part = await answer.read();
    if (part !== null && 'fault' in part)
      return faultEnding(part, exchange.interruption.signal, reader.answer.usage);
    const events = part === null ? reader.end() : reader.push(part);
    let text = '';
    for (const event of events) {
      law.check(event);
      if (event.type === 'delta') text += writeDelta(event.text, writer, exchange, ports);
    }
    const ending = endingOf(events.at(-1));
    const opens = ending?.outcome === 'completed' || ending?.outcome === 'incomplete';
    if (text !== '' || (opens && notes.stream)) await deliver(text, writer, exchange, ports);
    if (ending !== null) return ending;
    if (part === null) throw new Error('the body is over, and its reader brought no ending');
  }
}

function writeDelta(text: string, writer: AnswerWriter, { notes }: Exchange, { clock }: Ports): string {
  if (notes.clientLeft) return '';
  notes.firstTextMs ??= clock.monotonicMs();
  notes.text += text;
  return writer.delta(text);
}

function endingOf(last: TextEvent | undefined): Ending | null {
  if (last === undefined || last.type === 'delta') return null;
  return last.type === 'finish' ? finishedEnding(last) : failedEnding(last);
}

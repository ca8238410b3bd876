import type { AnswerWriter } from '../protocol/answer-writer.ts';
import { deliver } from './answer-client.ts';
import type { OpenedAnswer } from './attempt.ts';
import type { Ending, Exchange, Ports } from './exchange.ts';

/**
 * Writes an answer's text in the client's protocol as it is read, and returns how it ended. What one read brings is one
 * write. The last frames are left to the end of the exchange: they go out once it is settled.
 */
export async function rewrite(
  answer: OpenedAnswer,
  writer: AnswerWriter,
  exchange: Exchange,
  ports: Ports,
): Promise<Ending> {
  for (let part = answer.first; ; part = await answer.next()) {
    const { deltas, ending } = part;
    const text = deltas.map((delta) => writeDelta(delta, writer, exchange, ports)).join('');
    const opens = ending !== null && !('refusal' in ending) && exchange.notes.stream;
    if (text !== '' || opens) await deliver(text, writer, exchange, ports);
    if (ending !== null) return ending;
  }
}

function writeDelta(text: string, writer: AnswerWriter, { notes }: Exchange, { clock }: Ports): string {
  if (notes.clientLeft) return '';
  notes.firstTextMs ??= clock.monotonicMs();
  notes.text.add(text);
  return writer.delta(text);
}

import type { UpstreamAnswer } from '../domain/ports/upstreams.ts';
import { createOrderLaw } from '../protocol/order-law.ts';
import type { TextEvent } from '../protocol/text.ts';
import type { UpstreamReader } from '../protocol/upstream/dialect.ts';
import { failedEnding, faultEnding, finishedEnding } from './endings.ts';
import type { Ending } from './exchange.ts';

/** What one read of an answer brings: some of its text, and its ending when it has come. */
export interface AnswerPart {
  readonly deltas: readonly string[];
  readonly ending: Ending | null;
}

/** Reads an answer part by part; nothing may be read after its ending. A part may be empty. */
export function readParts(
  answer: UpstreamAnswer,
  reader: UpstreamReader,
  signal: AbortSignal,
): () => Promise<AnswerPart> {
  const law = createOrderLaw();
  return async () => {
    const bytes = await answer.read();
    if (bytes !== null && 'fault' in bytes)
      return { deltas: [], ending: faultEnding(bytes, signal, reader.answer.knownUsage()) };
    const events = bytes === null ? reader.end() : reader.push(bytes);
    for (const event of events) law.check(event);
    const ending = endingOf(events.at(-1));
    if (bytes === null && ending === null)
      throw new Error('the body is over, and its reader brought no ending');
    return { deltas: events.flatMap((event) => (event.type === 'delta' ? [event.text] : [])), ending };
  };
}

function endingOf(last: TextEvent | undefined): Ending | null {
  if (last === undefined || last.type === 'delta') return null;
  return last.type === 'finish' ? finishedEnding(last) : failedEnding(last);
}

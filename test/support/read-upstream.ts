import { readFastPath } from '../../src/config/environment.ts';
import type { AnswerPart, Usage } from '../../src/protocol/text.ts';
import type { Dialect, UpstreamReader } from '../../src/protocol/upstream/dialect.ts';
import { createReader } from '../../src/protocol/upstream/read-answer.ts';
import { plainSanitiser } from './sanitiser.ts';
import { createOrderLaw, eventsOf } from './order-law.ts';
import type { TextEvent } from './order-law.ts';

const encoder = new TextEncoder();

/** A reader of a streamed answer to a stream request. */
export function streamReader(
  dialect: Dialect,
  finishReason: 'required' | 'optional' = 'required',
  isFast = readFastPath(),
): UpstreamReader {
  return createReader(dialect, {
    sentTokens: 1_000_000,
    isFast,
    sanitise: plainSanitiser,
    contentType: 'text/event-stream',
    streamAsked: true,
    finishReason,
    thoughtTag: null,
  });
}

/** A reader of a whole body that was not requested as a stream. */
export function bodyReader(
  dialect: Dialect,
  finishReason: 'required' | 'optional' = 'required',
): UpstreamReader {
  return createReader(dialect, {
    sentTokens: 1_000_000,
    isFast: readFastPath(),
    sanitise: plainSanitiser,
    contentType: 'application/json',
    streamAsked: false,
    finishReason,
    thoughtTag: null,
  });
}

/**
 * Feeds a whole body to a reader and checks the events against the order law: an ending comes by the end of
 * the body at the latest, and nothing after it, whatever else is pushed.
 */
export function readUpstream(reader: UpstreamReader, pieces: readonly (string | Uint8Array)[]): TextEvent[] {
  const law = createOrderLaw();
  const events: TextEvent[] = [];
  const take = (part: AnswerPart): void => {
    const more = eventsOf(part);
    for (const event of more) law.check(event);
    events.push(...more);
  };
  for (const piece of pieces) take(reader.push(typeof piece === 'string' ? encoder.encode(piece) : piece));
  take(reader.end());
  if (!law.ended()) throw new Error('order law broken: the body ended without an ending');
  take(reader.push(encoder.encode('data: {"choices":[{"index":0,"delta":{"content":"late"}}]}\n\n')));
  take(reader.end());
  return events;
}

/** A summary of the events: the whole text, and the ending. */
export function summarize(events: readonly TextEvent[]): {
  readonly text: string;
  readonly ending: string;
  readonly usage: Usage | null;
} {
  const text = events.map((event) => (event.type === 'delta' ? event.text : '')).join('');
  const last = events.at(-1);
  if (last === undefined || last.type === 'delta') throw new Error('no ending');
  return { text, ending: last.type === 'finish' ? last.reason : last.refusal.code, usage: last.usage };
}

import { describe, expect, test } from 'vitest';
import type { AnswerWriter } from '../../src/protocol/answer-writer.ts';
import { createChatStreamWriter } from '../../src/protocol/chat/write-answer.ts';
import { createResponsesStreamWriter } from '../../src/protocol/responses/write-answer.ts';
import { textEvent } from '../bench/simulator/frames.ts';
import { chatDialect } from '../../src/protocol/upstream/chat.ts';
import { noExtras } from '../support/answers.ts';
import { streamReader } from '../support/read-upstream.ts';
import { expectCostRatio } from './cost-ratio.ts';

const identity = { id: '0'.repeat(32), createdAtSeconds: 1_763_800_000, model: 'small' };

const writers: Readonly<Record<string, () => AnswerWriter>> = {
  chat: () => createChatStreamWriter(identity, true),
  responses: () => createResponsesStreamWriter(identity, noExtras),
};

/** The events of one stream, and of how many of them one read consists. */
const events = 800;

function readsOf(eventsPerRead: number): readonly Buffer[] {
  const texts = Array.from({ length: events }, (_, index) => textEvent(index));
  return Array.from({ length: events / eventsPerRead }, (_, index) =>
    Buffer.from(texts.slice(index * eventsPerRead, (index + 1) * eventsPerRead).join('')),
  );
}

/** A stream through the reader and a writer, as the gateway does it. Returns how much was written. */
function rewrite(reads: readonly Buffer[], writer: AnswerWriter, isFast = true): number {
  const reader = streamReader(chatDialect, 'required', isFast);
  let written = 0;
  for (const bytes of reads)
    for (const delta of reader.push(bytes).deltas) written += writer.delta(delta).length;
  return written;
}

/** The same in the obvious way: every event is parsed, rebuilt and written. */
function rewriteNaively(reads: readonly Buffer[]): number {
  let written = 0;
  let rest = '';
  for (const bytes of reads) {
    const found = (rest + bytes.toString()).split('\n\n');
    rest = found.pop() ?? '';
    for (const event of found) {
      const frame = JSON.parse(event.slice(6)) as { choices: { index: number; delta: object }[] };
      const choices = frame.choices.map(({ index, delta }) => ({
        index,
        delta: { ...delta },
        logprobs: null,
        finish_reason: null,
      }));
      const { id, createdAtSeconds, model } = identity;
      const rebuilt = { id, object: 'chat.completion.chunk', created: createdAtSeconds, model, choices };
      written += `data: ${JSON.stringify(rebuilt)}\n\n`.length;
    }
  }
  return written;
}

describe('the cost of a stream, beside parsing, rebuilding and writing every event', () => {
  test.each([
    { protocol: 'chat', eventsPerRead: 1, bound: 0.65 },
    { protocol: 'chat', eventsPerRead: 8, bound: 0.5 },
    { protocol: 'responses', eventsPerRead: 1, bound: 0.65 },
    { protocol: 'responses', eventsPerRead: 8, bound: 0.55 },
  ])(
    'is at most $bound times for a $protocol client with $eventsPerRead events in a read',
    ({ protocol, eventsPerRead, bound }) => {
      const reads = readsOf(eventsPerRead);
      const create = writers[protocol];
      if (create === undefined) throw new Error(`there is no writer for ${protocol}`);
      expect(rewrite(reads, create())).toBeGreaterThan(events * 100);
      expect(rewriteNaively(reads)).toBeGreaterThan(events * 100);
      expectCostRatio(
        () => void rewrite(reads, create()),
        () => void rewriteNaively(reads),
        bound,
      );
    },
  );
});

describe('the cost of a stream on the fast path, beside the complete one', () => {
  test.each([
    { eventsPerRead: 1, bound: 0.7 },
    { eventsPerRead: 8, bound: 0.7 },
  ])('is at most $bound times with $eventsPerRead events in a read', ({ eventsPerRead, bound }) => {
    const reads = readsOf(eventsPerRead);
    expectCostRatio(
      () => void rewrite(reads, createChatStreamWriter(identity, true), true),
      () => void rewrite(reads, createChatStreamWriter(identity, true), false),
      bound,
    );
  });
});

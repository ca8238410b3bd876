import { describe, expect, test } from 'vitest';
import type { AnswerWriter } from '../../src/protocol/answer-writer.ts';
import { createChatResultWriter } from '../../src/protocol/chat/write-answer.ts';
import { createResponsesResultWriter } from '../../src/protocol/responses/write-answer.ts';
import { chatDialect } from '../../src/protocol/upstream/chat.ts';
import { wholeBody } from '../bench/simulator/frames.ts';
import { noExtras } from '../support/answers.ts';
import { bodyReader } from '../support/read-upstream.ts';
import { expectCostRatio } from './cost-ratio.ts';

const identity = { id: '0'.repeat(32), createdAtSeconds: 1_763_800_000, model: 'small' };

/** The answers of one measured loop, and the length of the text of each in bytes. */
const answers = 200;
const textBytes = 700;

const body = Buffer.from(wholeBody(textBytes));

const writers: Readonly<Record<string, () => AnswerWriter>> = {
  chat: () => createChatResultWriter(identity),
  responses: () => createResponsesResultWriter(identity, noExtras),
};

/** A whole answer through the reader and a writer, as the gateway does it. */
function rewrite(writer: AnswerWriter): string {
  const reader = bodyReader(chatDialect);
  const parts = [reader.push(body), reader.end()];
  for (const { deltas } of parts) for (const delta of deltas) writer.delta(delta);
  const ending = parts.find((part) => part.ending !== null)?.ending;
  if (ending?.kind !== 'finished') throw new Error('the answer did not finish');
  return writer.finish(ending, identity.createdAtSeconds, null);
}

/** The same in the obvious way: parsed, given its own id and model, and written. */
function rewriteNaively(): string {
  const whole = JSON.parse(body.toString()) as object;
  return JSON.stringify({ ...whole, id: identity.id, model: identity.model });
}

describe('the cost of a whole answer, beside parsing and writing its JSON', () => {
  test.each([
    { protocol: 'chat', bound: 4 },
    { protocol: 'responses', bound: 4.5 },
  ])('is at most $bound times for a $protocol client', ({ protocol, bound }) => {
    const create = writers[protocol];
    if (create === undefined) throw new Error(`there is no writer for ${protocol}`);
    expect(rewrite(create()).length).toBeGreaterThan(textBytes);
    expect(rewriteNaively().length).toBeGreaterThan(textBytes);
    expectCostRatio(
      () => {
        for (let count = 0; count < answers; count++) rewrite(create());
      },
      () => {
        for (let count = 0; count < answers; count++) rewriteNaively();
      },
      bound,
    );
  });
});

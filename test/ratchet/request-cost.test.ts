import { describe, expect, test } from 'vitest';
import { readChatRequest } from '../../src/protocol/chat/read-request.ts';
import { defaultCompatibility } from '../../src/protocol/contract/compatibility.ts';
import { parseBody } from '../../src/protocol/parse-body.ts';
import { isRefusal } from '../../src/shared/errors.ts';
import { expectCostRatio } from './cost-ratio.ts';

const spoken = 'She said: "Wait for it,\nor leave." ';
/** Looking for a quote once per quote costs more here than reading every byte. */
const quoted = '"sixteen letters.';

/** How many turns a request has, how long each is in bytes, of what text, and how often one measured loop reads it. */
const bodies = [
  { what: 'two short turns', turns: 2, bytes: 60, sentence: spoken, repeats: 500, bound: 6 },
  { what: '40 turns', turns: 40, bytes: 400, sentence: spoken, repeats: 40, bound: 5 },
  { what: 'a prompt of 100 KB', turns: 1, bytes: 100_000, sentence: spoken, repeats: 10, bound: 4 },
  { what: 'a quote every 17 bytes', turns: 1, bytes: 100_000, sentence: quoted, repeats: 10, bound: 4 },
] as const;

function bodyOf(turns: number, bytes: number, sentence: string): Buffer {
  const content = sentence.repeat(Math.ceil(bytes / sentence.length)).slice(0, bytes);
  const messages = Array.from({ length: turns }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content,
  }));
  return Buffer.from(JSON.stringify({ model: 'small', stream: true, temperature: 0.7, messages }));
}

function read(bytes: Buffer): number {
  const body = parseBody(bytes);
  if (isRefusal(body)) throw new Error(body.message);
  const request = readChatRequest(body, defaultCompatibility);
  if (isRefusal(request)) throw new Error(request.message);
  return request.turns.length;
}

describe('the cost of reading and checking a request, beside parsing its JSON', () => {
  test.each(bodies)('is at most $bound times for $what', ({ turns, bytes, sentence, repeats, bound }) => {
    const body = bodyOf(turns, bytes, sentence);
    expect(read(body)).toBe(turns);
    expectCostRatio(
      () => {
        for (let count = 0; count < repeats; count++) read(body);
      },
      () => {
        for (let count = 0; count < repeats; count++) JSON.parse(body.toString());
      },
      bound,
    );
  });
});

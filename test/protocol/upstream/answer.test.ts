import { expect, test } from 'vitest';
import { Answer } from '../../../src/protocol/upstream/answer.ts';

/** The longest text of an answer, in UTF-16 code units. */
const maxChars = 16_777_216;
const half = '\ud83d';

test.each([
  [maxChars, '', 'finished'],
  [maxChars, half, 'failed'],
  [maxChars - 1, half, 'finished'],
  [maxChars, 'x', 'failed'],
])(
  'an answer of %i characters and then %j, which may be held back until its end, has %s',
  (chars, rest, ending) => {
    const answer = new Answer({
      finishReason: 'optional',
      thoughtTag: null,
      sentTokens: 1,
      sanitise: (text) => text,
    });
    answer.say('x'.repeat(chars));
    answer.say(rest);
    answer.conclude('given');
    expect(answer.ending).toBe(ending);
  },
);

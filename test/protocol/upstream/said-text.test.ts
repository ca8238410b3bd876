import { describe, expect, test } from 'vitest';
import { Answer } from '../../../src/protocol/upstream/answer.ts';
import { SaidParts, SaidText } from '../../../src/protocol/upstream/said-text.ts';

const newAnswer = (): Answer =>
  new Answer({ finishReason: 'required', thoughtTag: null, sentTokens: 1, sanitise: (text) => text });

describe('a copy of the text that was streamed', () => {
  test('fails the answer if it shows more, also after an earlier copy was compared', () => {
    const [said, answer] = [new SaidText(), newAnswer()];
    said.say('abc', answer);
    said.sayRest('xbc', 0, answer);
    expect(answer.ending).toBeNull();
    said.say('de', answer);
    said.sayRest('xbcde', 0, answer);
    expect(answer.ending).toBeNull();
    said.sayRest('xbcdef', 0, answer);
    expect(answer.ending).toBe('failed');
  });
});

describe('the copies of what closes parts', () => {
  test.each([
    [2, 'which are compared', 8],
    [40, 'which are too long together', 4],
  ])('are compared up to a bound of their size: %i of a MiB each, %s', (copies, _reason, added) => {
    const [said, answer] = [new SaidParts(), newAnswer()];
    const text = 'x'.repeat(1_048_576);
    said.say(text, answer);
    for (let times = 0; times < copies; times++) said.close('part', text, answer);
    said.say('tail', answer);
    said.close('part', 'tail end', answer);
    expect(said.length - text.length).toBe(added);
  });

  test('are compared with the part that they close, however long the text before it is', () => {
    const [said, answer] = [new SaidParts(), newAnswer()];
    const text = 'x'.repeat(1_048_576);
    said.say(text, answer);
    said.close('part', text, answer);
    said.say('y', answer);
    for (let times = 0; times < 40; times++) said.close('part', 'y', answer);
    said.say('tail', answer);
    said.close('part', 'tail end', answer);
    expect(said.from(text.length)).toBe('ytail end');
  });

  test('are compared as long as all that was compared is no more than the bound', () => {
    const [said, answer] = [new SaidParts(), newAnswer()];
    const text = 'x'.repeat(1_048_576);
    said.say(text, answer);
    for (let times = 0; times < 31; times++) said.close('part', text, answer);
    const last = 'y'.repeat(1_048_575);
    said.say(last, answer);
    said.close('part', `${last}zz`, answer);
    expect(said.from(text.length + last.length)).toBe('zz');
  });
});

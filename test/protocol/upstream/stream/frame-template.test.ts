import { describe, expect, test } from 'vitest';
import { Answer } from '../../../../src/protocol/upstream/answer.ts';
import { FrameTemplate, TemplateLearner } from '../../../../src/protocol/upstream/stream/frame-template.ts';
import { plainSanitiser } from '../../../support/sanitiser.ts';

const frameOf = (text: string, count = '1'): string =>
  `data: {"sequence_number":${count},"delta":${JSON.stringify(text)}}\n\n`;

describe('the form of a frame', () => {
  const template = FrameTemplate.of(frameOf('a'), 'a');
  const read = (stream: string, at = 0) => [template?.read(stream, at), template?.end];

  test.each(['0', '7', '9', '10', '4294967296'])('has any count: %s', (count) => {
    const frame = frameOf('b', count);
    expect(read(frame)).toEqual(['b', frame.length]);
    expect(read(`x${frame}y`, 1)).toEqual(['b', frame.length + 1]);
  });

  test.each(['', '00', '07', '007', '-1', '1.5', '/', ':', '"1"'])('has no count %j', (count) => {
    expect(read(frameOf('b', count))[0]).toBeNull();
  });
});

describe('how many frames are read in full', () => {
  const learnedAfter = (copies: readonly number[], said: string) => {
    const count = { trials: 0 };
    const learner = new TemplateLearner(() => {
      count.trials++;
      const answer = new Answer({
        finishReason: 'required',
        thoughtTag: null,
        sentTokens: 1,
        sanitise: plainSanitiser,
      });
      answer.say(said);
      return answer;
    });
    return copies.map((copied) => {
      const before = count.trials;
      let seen = 0;
      for (; count.trials === before; seen++) learner.saw(frameOf('a'), 'a');
      const hasForm = learner.template !== null;
      learner.copies = copied;
      return [seen, hasForm];
    });
  };

  test('is twice as many after each form of little use, up to a bound, and few again after one of use', () => {
    expect(learnedAfter([15, 0, 0, 15, 0, 16, 0, 0], 'textgate reads this back')).toEqual(
      [4, 8, 16, 32, 64, 64, 64, 4].map((seen) => [seen, true]),
    );
  });

  test('is the same where a form does not pass its trial', () => {
    expect(learnedAfter([0, 0], 'something else')).toEqual([
      [4, false],
      [8, false],
    ]);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chatDialect } from '../../../src/protocol/upstream/chat.ts';
import { createReader } from '../../../src/protocol/upstream/read-answer.ts';
import { TaggedThoughts } from '../../../src/protocol/upstream/tagged-thoughts.ts';
import { propertyRun } from '../../support/property-run.ts';
import { chunks, done, sse } from '../../support/providers/provider-script.ts';
import { plainSanitiser } from '../../support/sanitiser.ts';

/** The thoughts and the text of an answer that arrives in these pieces. */
function tell(pieces: readonly string[]): readonly [thought: string, text: string] {
  const tagged = new TaggedThoughts('think');
  const told = [...pieces.map((piece) => tagged.take(piece)), tagged.end()];
  return [told.map(({ thought }) => thought).join(''), told.map(({ text }) => text).join('')];
}

describe('thoughts in a tag', () => {
  test.each<[string, string, string, string]>([
    ['at the beginning', '<think>a <b> c</think>x', 'a <b> c', 'x'],
    ['of any length', `<think>${'a'.repeat(2_000)}</think>x`, 'a'.repeat(2_000), 'x'],
    ['with blanks around them', ' \n<think>\na\n</think>\n\n x y ', '\na\n', 'x y '],
    ['that are empty', '<think></think>x', '', 'x'],
    ['of which the end is missing', '<think>a</thin', 'a</thin', ''],
    ['behind text, which are text', 'x <think>a</think>', '', 'x <think>a</think>'],
    ['a second time, which are text', '<think>a</think>x<think>b</think>', 'a', 'x<think>b</think>'],
    ['of another name, which are text', '<thinking>a</thinking>', '', '<thinking>a</thinking>'],
    ['of which the beginning is all, which is text', ' <thi', '', ' <thi'],
    ['of which there are none', '  x', '', '  x'],
    ['in an answer of blanks', ' \n', '', ''],
    ['behind as many blanks as are kept', `${' '.repeat(1_024)}<think>a</think>x`, 'a', 'x'],
    [
      'behind more blanks than are kept',
      `${' '.repeat(1_025)}<think>a</think>`,
      '',
      `${' '.repeat(1_025)}<think>a</think>`,
    ],
  ])('%s', (_what, answer, thought, text) => {
    expect(tell([answer])).toEqual([thought, text]);
    expect(tell(Array.from(answer))).toEqual([thought, text]);
  });

  test('are told at once but for what may begin the tag behind them', () => {
    const tagged = new TaggedThoughts('think');
    expect(['<think>ab', 'c<', 'b></thi'].map((piece) => tagged.take(piece).thought)).toEqual([
      'ab',
      'c',
      '<b>',
    ]);
  });

  const part = fc.constantFrom(
    '<think>',
    '</think>',
    '<',
    'think>',
    '/',
    ' ',
    '\n',
    'x',
    'é',
    '<think',
    '</',
  );

  test('are told from the text in the same way however the answer is cut', () => {
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 12 }),
        fc.array(fc.nat(40), { maxLength: 6 }),
        (parts, places) => {
          const answer = parts.join('');
          const cuts = [
            0,
            ...places.filter((at) => at < answer.length).toSorted((a, b) => a - b),
            answer.length,
          ];
          const pieces = cuts.slice(1).map((end, at) => answer.slice(cuts[at], end));
          expect(tell(pieces)).toEqual(tell([answer]));
          const [thought, text] = tell([answer]);
          expect(answer.endsWith(text) || text === '').toBe(true);
          expect(thought).not.toContain('</think>');
        },
      ),
      propertyRun(2_000),
    );
  });

  test('are counted, and left out of the text, on both paths through a stream', () => {
    const { say, finish } = chunks();
    const pieces = ['<think>', 'a', 'b', 'c', 'd', 'e', 'f', '</think>', '\n', ...Array.from('<think>text')];
    const stream = sse(...pieces.map((content) => say({ content })), finish({}), done);
    const read = (isFast: boolean) => {
      const reader = createReader(chatDialect, {
        contentType: 'text/event-stream',
        streamAsked: true,
        finishReason: 'required',
        thoughtTag: 'think',
        sentTokens: 100,
        sanitise: plainSanitiser,
        isFast,
      });
      const parts = [reader.push(Buffer.from(stream)), reader.end()];
      return [
        parts.flatMap(({ deltas }) => deltas).join(''),
        reader.answer.thoughts.chars,
        parts[0]?.ending?.kind,
      ];
    };
    expect(read(true)).toEqual(['<think>text', 6, 'finished']);
    expect(read(false)).toEqual(read(true));
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { responsesDialect } from '../../../src/protocol/upstream/responses.ts';
import { propertyRun } from '../../support/property-run.ts';
import { readUpstream, streamReader, summarize } from '../../support/read-upstream.ts';

const event = (type: string, fields: object = {}) => `data: ${JSON.stringify({ type, ...fields })}\n\n`;
const delta = (text: string) => event('response.output_text.delta', { delta: text });
const partOf = (text: string) => ({ type: 'output_text', text });
const textDone = (text?: string) => event('response.output_text.done', { text });
const partDone = (text: string) => event('response.content_part.done', { part: partOf(text) });
const itemDone = (...texts: string[]) =>
  event('response.output_item.done', { item: { type: 'message', content: texts.map(partOf) } });
const completed = (...texts: string[]) =>
  event('response.completed', {
    response: {
      status: 'completed',
      output: texts.map((text) => ({ type: 'message', content: [partOf(text)] })),
    },
  });

const read = (frames: readonly string[], ...output: string[]) => {
  const reader = streamReader(responsesDialect);
  const { text, ending } = summarize(readUpstream(reader, [...frames, completed(...output)]));
  return { text, ending, differs: reader.answer.violations.has('inconsistent_end') };
};

describe('what closes a part or an item of a Responses stream', () => {
  test.each<[string, string[], string]>([
    ['a part, with text of a lost delta', [delta('one '), partDone('one two')], 'one two'],
    ['an item, with text of a lost delta', [delta('one '), itemDone('one two')], 'one two'],
    ['a part after its text', [delta('one '), textDone('one '), partDone('one two')], 'one two'],
    ['an item after its part', [delta('a'), textDone('a'), partDone('ab'), itemDone('abc')], 'abc'],
    ['an item of two parts', [delta('a'), partDone('a'), delta('b'), itemDone('a', 'bc')], 'abc'],
    ['a second part without deltas', [delta('a'), partDone('a'), partDone('b'), itemDone('a', 'b')], 'ab'],
    ['a second part, but not its text', [delta('a'), textDone('a'), partDone('b')], 'ab'],
    ['a second item without deltas', [delta('a'), itemDone('a'), itemDone('b')], 'ab'],
    ['a second item, but not the first', [delta('a'), textDone('a'), itemDone('bcd')], 'abcd'],
    [
      'a second item with the text of the first',
      [delta('a'), itemDone('a'), delta('a'), itemDone('a')],
      'aa',
    ],
    ['a part after one closed without its text', [delta('a'), textDone(), delta('b'), textDone('bc')], 'abc'],
    ['a part after one closed with no text', [delta('a'), textDone(''), delta('b'), textDone('bc')], 'abc'],
    ['a text behind one that is closed late', [delta('a'), delta('b'), textDone('a'), textDone('bc')], 'abc'],
    ['an item after one closed without parts', [delta('a'), itemDone(), delta('b'), itemDone('bc')], 'abc'],
  ])('adds what is missing: %s', (_name, frames, text) => {
    expect(read(frames)).toEqual({ text, ending: 'stop', differs: false });
  });

  const [a, b] = [
    [delta('a'), textDone('a')],
    [delta('b'), textDone('b')],
  ] as const;
  test.each<[string, string[], string]>([
    ['items at the end', [...a, partDone('a'), ...b, partDone('b'), itemDone('a'), itemDone('b')], 'ab'],
    ['texts at the end', [delta('a'), delta('b'), textDone('a'), textDone('b')], 'ab'],
    [
      'parts after their item',
      [delta('a'), delta('b'), itemDone('a', 'b'), partDone('a'), partDone('b')],
      'ab',
    ],
    [
      'texts after their item',
      [delta('a'), delta('b'), itemDone('a', 'b'), textDone('a'), textDone('b')],
      'ab',
    ],
    [
      'an item within the text of the next',
      [...a, delta('b'), itemDone('a'), delta('c'), textDone('bc'), itemDone('bc')],
      'abc',
    ],
    [
      'a part within the text of the next',
      [...a, delta('b'), partDone('a'), delta('c'), textDone('bc'), itemDone('a', 'bc')],
      'abc',
    ],
    ['an item that goes on', [...a, itemDone('a'), ...b, itemDone('a', 'b')], 'ab'],
    ['an item that goes on and lost text', [...a, itemDone('a'), ...b, itemDone('a', 'bc')], 'abc'],
    ['a part that goes on', [...a, partDone('a'), ...b, partDone('ab'), itemDone('ab')], 'ab'],
    ['a part of two, the last one again', [delta('a'), delta('b'), itemDone('a', 'b'), partDone('b')], 'ab'],
  ])('late says nothing twice: %s', (_name, frames, text) => {
    expect(read(frames)).toEqual({ text, ending: 'stop', differs: false });
    expect(read(frames, text)).toEqual({ text, ending: 'stop', differs: false });
  });

  test.each<[string, string[]]>([
    ['a text', [delta('ab '), textDone('ab '), textDone('ab ')]],
    ['a text whose copies are trimmed', [delta('ab '), textDone('ab'), textDone('ab')]],
    ['a text, first trimmed and then in full', [delta('ab '), textDone('ab'), textDone('ab ')]],
    ['a part', [delta('ab '), partDone('ab '), partDone('ab ')]],
    ['an item', [delta('ab '), itemDone('ab '), itemDone('ab ')]],
    ['an item, trimmed', [delta('ab '), itemDone('ab '), itemDone('ab')]],
    ['a text, trimmed after its part', [delta('ab '), partDone('ab '), textDone('ab')]],
    ['a text, trimmed after its item', [delta('ab '), itemDone('ab '), textDone('ab')]],
    ['a part, trimmed, after its item', [delta('ab '), textDone('ab'), itemDone('ab '), partDone('ab')]],
  ])('twice is said once: %s', (_name, frames) => {
    expect(read(frames)).toEqual({ text: 'ab ', ending: 'stop', differs: true });
  });

  test.each<[string, string[]]>([
    ['a part', [delta('world'), partDone('hello world')]],
    ['a part after its text', [delta('world'), textDone('world'), partDone('hello world')]],
    ['an item', [delta('world'), itemDone('hello world')]],
    ['an item after its text', [delta('world'), textDone('world'), itemDone('hello world')]],
    ['an item of two parts', [delta('a'), textDone('a'), delta('c'), textDone('c'), itemDone('a', 'bc')]],
  ])('with text that came before that of the deltas fails the answer: %s', (_name, frames) => {
    expect(read(frames).ending).toBe('upstream_invalid');
  });

  test('adds whole parts that were lost to the parts before and behind them', () => {
    const part = fc.record({ text: fc.stringMatching(/^[a-z]{1,3}\d{3} ?$/), isLost: fc.boolean() });
    const unique = { selector: ({ text }: { text: string }) => text.trim(), minLength: 1, maxLength: 4 };
    const items = fc.uniqueArray(part, unique).map((parts) => parts.map((one) => [one]));
    fc.assert(
      fc.property(items, fc.constantFrom('text', 'part', 'item', 'all'), (list, closing) => {
        const frames = list.flatMap((parts) => [
          ...parts.flatMap(({ text, isLost }) => [
            ...(isLost ? [] : [delta(text)]),
            ...(closing === 'text' || closing === 'all' ? [textDone(text)] : []),
            ...(closing === 'part' || closing === 'all' ? [partDone(text)] : []),
          ]),
          ...(closing === 'item' || closing === 'all' ? [itemDone(...parts.map(({ text }) => text))] : []),
        ]);
        const text = list
          .flat()
          .map((one) => one.text)
          .join('');
        expect(read(frames)).toEqual({ text, ending: 'stop', differs: false });
        expect(read(frames, text)).toEqual({ text, ending: 'stop', differs: false });
      }),
      propertyRun(300),
    );
  });

  test('adds each lost end of a part, whichever of its closings an upstream sends', () => {
    const word = fc.string({ minLength: 1, maxLength: 4, unit: 'grapheme' });
    const part = fc.record({ said: word, lost: fc.string({ maxLength: 4 }) });
    const sent = fc.record({ text: fc.boolean(), part: fc.boolean() });
    const items = fc.array(fc.array(part, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(items, sent, fc.boolean(), (list, closings, byItem) => {
        fc.pre(closings.text || closings.part || (byItem && list.every(({ length }) => length === 1)));
        const frames = list.flatMap((parts) => [
          ...parts.flatMap(({ said, lost }) => [
            delta(said),
            ...(closings.text ? [textDone(said + lost)] : []),
            ...(closings.part ? [partDone(said + lost)] : []),
          ]),
          ...(byItem ? [itemDone(...parts.map(({ said, lost }) => said + lost))] : []),
        ]);
        const text = list.flatMap((parts) => parts.map(({ said, lost }) => said + lost)).join('');
        expect(read(frames)).toEqual({ text, ending: 'stop', differs: false });
      }),
      propertyRun(300),
    );
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { responsesDialect } from '../../../src/protocol/upstream/responses.ts';
import { propertyRun } from '../../support/property-run.ts';
import { readUpstream, streamReader, summarize } from '../../support/read-upstream.ts';

const event = (type: string, fields: object = {}) => `data: ${JSON.stringify({ type, ...fields })}\n\n`;
const delta = (text: string) => event('response.output_text.delta', { delta: text });
const partOf = (text: string) => ({ type: 'output_text', text });
const textDone = (text: string) => event('response.output_text.done', { text });
const partDone = (text: string) => event('response.content_part.done', { part: partOf(text) });
const itemDone = (...texts: string[]) =>
  event('response.output_item.done', { item: { type: 'message', content: texts.map(partOf) } });
const completed = event('response.completed', { response: { status: 'completed', output: [] } });

const read = (frames: readonly string[]) => {
  const reader = streamReader(responsesDialect);
  const { text, ending } = summarize(readUpstream(reader, [...frames, completed]));
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
    ['a second item without deltas', [delta('a'), itemDone('a'), itemDone('b')], 'ab'],
    [
      'a second item with the text of the first',
      [delta('a'), itemDone('a'), delta('a'), itemDone('a')],
      'aa',
    ],
  ])('adds what is missing: %s', (_name, frames, text) => {
    expect(read(frames)).toEqual({ text, ending: 'stop', differs: false });
  });

  test.each<[string, string[]]>([
    ['a text', [delta('ab '), textDone('ab '), textDone('ab ')]],
    ['a text whose copies are trimmed', [delta('ab '), textDone('ab'), textDone('ab')]],
    ['a part', [delta('ab '), partDone('ab '), partDone('ab ')]],
    ['an item', [delta('ab '), itemDone('ab '), itemDone('ab ')]],
    ['a part, after its item', [delta('ab '), itemDone('ab '), partDone('ab ')]],
  ])('twice is said once: %s', (_name, frames) => {
    expect(read(frames)).toEqual({ text: 'ab ', ending: 'stop', differs: true });
  });

  test.each<[string, string[]]>([
    ['a part', [delta('world'), partDone('hello world')]],
    ['an item', [delta('world'), itemDone('hello world')]],
    ['an item of two parts', [delta('a'), textDone('a'), delta('c'), textDone('c'), itemDone('a', 'bc')]],
  ])('with text that came before that of the deltas fails the answer: %s', (_name, frames) => {
    expect(read(frames).ending).toBe('upstream_invalid');
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

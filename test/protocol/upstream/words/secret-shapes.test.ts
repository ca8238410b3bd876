import { expect, test } from 'vitest';
import { markOfShape } from '../../../../src/protocol/upstream/words/secret-shapes.ts';

test.each<[string, string, string | null]>([
  ['16 letters and digits in a run of 20', 'abc-abcdefgh12345678', '[key]'],
  ['15 letters and digits in a run of 20', 'abcd-abcdefgh1234567', null],
  ['16 letters and digits in a run of 19', 'ab-abcdefgh12345678', null],
  ['20 letters', 'abcdefghijklmnopqrst', '[key]'],
  ['19 letters', 'abcdefghijklmnopqrs', null],
  ['a name of words in one', 'ContextWindowExceededError', null],
  ['a name of words of which most are short', 'AbcDefGhiJklMnoPqrStu', '[key]'],
  ['a name with a version', 'some-model-name-v2-large', null],
  ['three changes of kind in ten characters', 'a1b2c3d-eeee-ffff-gg', '[key]'],
  ['fewer changes of kind', 'a1b2c3-eeee-ffff-ggg', null],
])('a word of %s is a key of an unknown kind or none', (_what, word, mark) => {
  expect(markOfShape(word)).toBe(mark);
});

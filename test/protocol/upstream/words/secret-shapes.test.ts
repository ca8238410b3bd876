import { describe, expect, test } from 'vitest';
import { isShownName, markOfShape } from '../../../../src/protocol/upstream/words/secret-shapes.ts';
import type { Mark } from '../../../../src/protocol/upstream/words/secret-shapes.ts';

describe('the shape of a word', () => {
  test.each<[string, string, Mark | null]>([
    ['a path with two steps', 'a/b/c', '[path]'],
    ['a name with one step', 'meta/llama', null],
    ['a file in a folder', 'app/x.py', '[path]'],
    ['a file', 'x.py', '[path]'],
    ['a path from the root', '/etc', '[path]'],
    ['a path from here', './etc', '[path]'],
    ['a path of a domain', 'api.example.com/v1/x', '[host]'],
    ['a port of a domain with a path', 'api.example.com:8443/v1/x', '[host]'],
    ['a query of a domain', 'api.example.com?x=1', '[host]'],
    ['five numbers between colons', '1:2:3:4:5', '[host]'],
    ['four numbers between colons', '1:2:3:4', null],
    ['a short address of IPv6', 'fe80::1', '[host]'],
    ['a private name of three parts', 'rack.gpu1.lab', '[host]'],
    ['a private name of four parts', 'a.rack-2.gpu.lab', '[host]'],
    ['a private name of two parts', 'gpu1.lab', null],
    ['three parts without a digit or hyphen', 'one.two.three', null],
    ['three parts with a capital', 'Rack.gpu1.lab', null],
    ['three parts with a digit in the last', 'rack.gpu.lab1', null],
    ['three parts, the last of one letter', 'rack.gpu1.x', null],
    ['three parts, one without a letter', 'rack.1.lab', null],
  ])('is told: %s', (_what, word, mark) => {
    expect(markOfShape(word)).toBe(mark);
  });
});

test.each<[string, string, string | null]>([
  ['16 letters and digits in a run of 20', 'abc-abcdefgh12345678', '[key]'],
  ['15 letters and digits in a run of 20', 'abcd-abcdefgh1234567', null],
  ['16 letters and digits in a run of 19', 'ab-abcdefgh12345678', null],
  ['20 letters', 'abcdefghijklmnopqrst', '[key]'],
  ['19 letters', 'abcdefghijklmnopqrs', null],
  ['19 letters in a run of 21', 'x-abcdefghijklmnopqrs', null],
  ['a name of words in one', 'ContextWindowExceededError', null],
  ['a name of words of which most are short', 'AbcDefGhiJklMnoPqrStu', '[key]'],
  ['the same in a long run', 'AbcDefGhiJklMnoPqrStu_and_then_some_more_words_follow', '[key]'],
  ['words of four letters in a long run', 'AbcdeFghijKlmnoPqrst_and_more_words', null],
  ['a name with a version', 'some-model-name-v2-large', null],
  ['three changes of kind in ten characters', 'a1b2c3d-eeee-ffff-gg', '[key]'],
  ['the same, two of them behind a first character', 'a1bcdef2gh-i3jklmnop', '[key]'],
  ['the same between capitals and small letters', 'AbCdEfG-ab-cd-ef-ghi', '[key]'],
  ['the same between capitals and digits', 'A1B2C3D-AB-CD-EF-GHI', '[key]'],
  ['fewer changes of kind', 'a1b2c3-eeee-ffff-ggg', null],
  ['fewer changes of kind, and numbers of two digits', 'abc89def90ab-cdef-gh', null],
])('a word of %s is a key of an unknown kind or none', (_what, word, mark) => {
  expect(markOfShape(word)).toBe(mark);
});

test.each([
  ['gpt-4o', true],
  ['meta/llama/x', true],
  ['models.example.com', true],
  ['sk-abc123', false],
  ['joe@example.com', false],
  ['org-AbCdEf12', false],
  ['models/abcdefghijklmnop1234/x', false],
  ['abcdefghijklmnop1234.example.com', false],
])('the name %s that a client wrote may be shown: %s', (name, isShown) => {
  expect(isShownName(name)).toBe(isShown);
});

import { describe, expect, test } from 'vitest';
import { foldMessage, foldText } from '../../../../src/protocol/upstream/words/folded-text.ts';

describe('a folded text', () => {
  const fold = (text: string): string => String.fromCharCode(...foldMessage(text).units);

  test('has of ASCII the letters in lower case and the digits', () => {
    const ascii = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)).filter(
      (character) => !'%&\\'.includes(character),
    );
    const letters = 'abcdefghijklmnopqrstuvwxyz';
    expect(fold(ascii.join(''))).toBe(`0123456789${letters}${letters}`);
  });

  test.each([
    ['a letter with an accent', 'É', 'e'],
    ['a ligature', 'ﬁ', 'fi'],
    ['a sign', '©\u0080', ''],
    ['a character of two units', 'a\u{10000}b', 'a\u{10000}b'],
    ['the last character of one unit, which is no letter', 'a\uffffb', 'ab'],
    ['an ideograph of another plane', '\u{20000}', '\u{20000}'],
    ['a form of an ideograph', '\u{2f800}', '丽'],
    ['what is no letter among those forms', 'a\u{2f000}\u{2ffff}b', 'ab'],
    ['an ideograph behind those forms', '\u{30000}', '\u{30000}'],
    ['what is behind all letters', 'a\u{40000}\u{e0100}b', 'ab'],
    ['an escape of a letter', 'a%41b', 'aab'],
    ['an escape of a sign', 'a&quot;b', 'ab'],
    ['an escape of nothing', String.raw`a\"b`, 'ab'],
  ])('has what matters of %s', (_what, text, folded) => {
    expect(fold(text)).toBe(folded);
  });

  test('knows where each unit was written', () => {
    expect(foldMessage('a ﬁ&Eacute;\u{10000}b')).toEqual({
      units: [...Array.from('afie', (unit) => unit.charCodeAt(0)), 0xd800, 0xdc00, 'b'.charCodeAt(0)],
      starts: [0, 2, 2, 3, 11, 11, 13],
      ends: [1, 3, 3, 11, 13, 13, 14],
    });
  });

  test('is refused if it has more units than it may, together with those before it', () => {
    expect([foldText('abc', [], 3), foldText('abcd', [], 3)]).toEqual([true, false]);
    expect([foldText('a', [1, 2], 3), foldText('ab', [1, 2], 3)]).toEqual([true, false]);
  });
});

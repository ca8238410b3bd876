import { describe, expect, test } from 'vitest';
import { layersOf, readEscape } from '../../../../src/protocol/upstream/words/escapes.ts';

describe('the escape at the beginning of a text', () => {
  const read = (text: string): [string | null, string] => {
    const { point, end } = readEscape(text, 0);
    return [point === null ? null : String.fromCodePoint(point), text.slice(end)];
  };

  test.each<[string, string, string | null, string]>([
    ['a byte', '%41x', 'A', 'x'],
    ['a byte that was escaped twice', '%2541x', 'A', 'x'],
    ['the first character of two bytes', '%c2%80x', '\x80', 'x'],
    ['the last of two bytes', '%df%bfx', '\u07ff', 'x'],
    ['the first of three bytes', '%e0%a0%80x', '\u0800', 'x'],
    ['the last of three bytes', '%ef%bf%bfx', '\uffff', 'x'],
    ['the first of four bytes', '%f0%90%80%80x', '\u{10000}', 'x'],
    ['the last of four bytes', '%f4%8f%bf%bfx', '\u{10ffff}', 'x'],
    ['more than there are', '%f4%90%80%80', '\xf4', '%90%80%80'],
    ['a byte of Latin-1 that begins nothing in UTF-8', '%c1%80', '\xc1', '%80'],
    ['another one', '%f5%80%80%80', '\xf5', '%80%80%80'],
    ['one without what belongs to it', '%e0%a0', '\xe0', '%a0'],
    ['one with another one behind it', '%c3%c3', '\xc3', '%c3'],
    ['one with a letter behind it', '%c3a', '\xc3', 'a'],
    ['bytes in hexadecimal digits', String.raw`\xc3\xa9x`, 'é', 'x'],
    ['bytes in octal digits', String.raw`\303\251x`, 'é', 'x'],
    ['a percent sign alone', '%xyz', '%', 'xyz'],
    ['a unit', String.raw`\u00e9x`, 'é', 'x'],
    ['a unit of an old browser', '%u00e9x', 'é', 'x'],
    ['two halves', String.raw`\ud83d\ude00x`, '😀', 'x'],
    ['the first two halves', String.raw`\ud800\udc00x`, '\u{10000}', 'x'],
    ['the last two halves', String.raw`\udbff\udfffx`, '\u{10ffff}', 'x'],
    ['a first half alone', String.raw`\ud83dx`, '\ud83d', 'x'],
    ['a first half before a letter', String.raw`\ud83d\u0041`, '\ud83d', String.raw`\u0041`],
    ['a first half before what is behind halves', String.raw`\ud83d\ue000`, '\ud83d', String.raw`\ue000`],
    ['a second half before one', String.raw`\udc00\udc00`, '\udc00', String.raw`\udc00`],
    ['a code point of Python', String.raw`\U0001f600x`, '😀', 'x'],
    ['a code point of Rust', String.raw`\u{1f600}x`, '😀', 'x'],
    ['a code point beyond all', String.raw`\u{110000}x`, null, 'x'],
    ['the last code point', String.raw`\u{10ffff}x`, '\u{10ffff}', 'x'],
    ['a line break', String.raw`\nx`, ' ', 'x'],
    ['a line break that was escaped twice', String.raw`\\\\nx`, ' ', 'x'],
    ['a backslash before a quotation mark', String.raw`\"x`, null, '"x'],
    ['a backslash before a letter', String.raw`\wx`, '\\', 'wx'],
    ['a backslash at the end', '\\', null, ''],
    ['an ampersand alone', '&xyz', '&', 'xyz'],
    ['an entity', '&quot;x', '"', 'x'],
    ['an entity that was escaped twice', '&amp;quot;x', '"', 'x'],
    ['an entity of a letter', '&szlig;x', 'ß', 'x'],
    ['an entity of a letter with a mark', '&Eacute;x', 'e', 'x'],
    ['an entity of another sign', '&nbsp;x', ' ', 'x'],
    ['an entity by its number', '&#233;x', 'é', 'x'],
    ['an entity by its number in hexadecimal digits', '&#xe9;x', 'é', 'x'],
    ['an entity beyond all', '&#1114112;x', null, 'x'],
    ['a word that looks like an entity', '&word;x', '&', 'word;x'],
    ['such a word that was escaped twice', '&amp;word;x', '&', 'word;x'],
  ])('is %s', (_what, text, said, rest) => {
    expect(read(text)).toEqual([said, rest]);
  });
});

describe('a message and what it says once its escapes are read', () => {
  const layers = (message: string) => layersOf(message).map(({ text }) => text);

  test('is read twice at the most, and only as long as there is an escape', () => {
    expect(layers('abc')).toEqual(['abc']);
    expect(layers('%41bc')).toEqual(['%41bc', 'Abc']);
    expect(layers(String.raw`\u0026quot;a`)).toEqual([String.raw`\u0026quot;a`, '&quot;a', '"a']);
    expect(layers(String.raw`\u0026#38;#65;`)).toEqual([String.raw`\u0026#38;#65;`, '&#38;#65;', '&#65;']);
  });

  test('has its parts where they were written', () => {
    const message = String.raw`a\u0026quot;😀%41b`;
    const [, once, twice] = layersOf(message);
    const written = (layer: typeof once, part: string) => {
      const start = layer?.text.indexOf(part) ?? -1;
      const span = layer?.inMessage({ start, end: start + part.length, mark: '[text]' });
      return [message.slice(span?.start, span?.end), span?.mark];
    };
    expect(written(once, '&quot;')).toEqual([String.raw`\u0026quot;`, '[text]']);
    expect(written(twice, '"')).toEqual([String.raw`\u0026quot;`, '[text]']);
    expect(written(twice, '😀')).toEqual(['😀', '[text]']);
    expect(written(twice, 'A')).toEqual(['%41', '[text]']);
    expect(written(twice, 'b')).toEqual(['b', '[text]']);
  });
});

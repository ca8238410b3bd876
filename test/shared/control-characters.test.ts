import { expect, test } from 'vitest';
import { escapeControlCharacters, hasControlCharacters } from '../../src/shared/control-characters.ts';

test.each([
  ['an escape sequence', '\u001b[2Jx', String.raw`\u{1b}[2Jx`],
  ['a second line', 'a\r\nb\tc', String.raw`a\r\nb\tc`],
  ['a direction mark', 'a\u202eb', String.raw`a\u{202e}b`],
  ['an invisible tag', 'a\u{e0041}b', String.raw`a\u{e0041}b`],
  ['a line separator', 'a\u2028b', String.raw`a\u{2028}b`],
  ['a C1 control', 'a\u009bb', String.raw`a\u{9b}b`],
])('%s is detected and escaped', (_, text, escaped) => {
  expect(hasControlCharacters(text)).toBe(true);
  expect(escapeControlCharacters(text)).toBe(escaped);
});

test('ordinary text of any script is not changed', () => {
  const text = 'org/Qwen3-8B:free — größe, 模型, 🌍, عربي';
  expect(hasControlCharacters(text)).toBe(false);
  expect(escapeControlCharacters(text)).toBe(text);
});

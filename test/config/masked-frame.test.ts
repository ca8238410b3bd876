import { expect, test } from 'vitest';
import { maskedFrame } from '../../src/config/file/yaml-file.ts';

const keys = new Set(['url', 'apiKey']);

test('a frame shows the keys, the references and the structure of a line, and dots for all else', () => {
  const text = 'a: 1\n  mine: { url: "http://x", apiKey: ${KEY}, - sk-1 } # note\n';
  expect(maskedFrame(text, { line: 2, column: 36 }, keys)).toBe(
    `
2 |   ····: { url: "····:···", apiKey: \${KEY}, - ···· } # ····
                                       ^`,
  );
});

test('a frame of a long line shows the part around the fault', () => {
  const text = `apiKey: ${'x'.repeat(200)}{${'y'.repeat(200)}`;
  const [, line = '', caret = ''] = maskedFrame(text, { line: 1, column: 209 }, keys).split('\n');
  expect(line).toBe(`1 | ${'·'.repeat(40)}{${'·'.repeat(39)}`);
  expect(line[caret.indexOf('^')]).toBe('{');
});

test('a frame counts a tab as one character, as the parser does', () => {
  const [, line = '', caret = ''] = maskedFrame('\turl: x', { line: 1, column: 2 }, keys).split('\n');
  expect(line[caret.indexOf('^')]).toBe('u');
});

test.each(['', '  ', '\t'])('there is no frame of the blank line %j', (text) => {
  expect(maskedFrame(text, { line: 1, column: 1 }, keys)).toBe('');
});

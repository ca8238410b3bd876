import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeptText, TextSample } from '../../src/protocol/kept-text.ts';
import { propertyRun } from '../support/property-run.ts';

function sampleOf(texts: readonly string[]): TextSample {
  const sample = new TextSample();
  for (const text of texts) sample.add(text);
  return sample;
}

test('a kept text and a sample are the text, any part of it and its size, in whatever pieces it was added', () => {
  const piece = fc.oneof(
    // Of the usual size, all of them together would be shorter than what is kept in one piece.
    fc.string({ unit: 'binary', maxLength: 40, size: 'max' }),
    fc.string({ unit: 'grapheme-ascii', maxLength: 400, size: 'max' }),
    fc.constantFrom('', '\ud83d', '\ude00', 'é', '語'),
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 60, size: 'max' }),
      fc.nat(),
      fc.nat(),
      (pieces, first, other) => {
        const kept = new KeptText();
        for (const one of pieces) kept.add(one);
        const text = pieces.join('');
        expect([kept.toString(), kept.length]).toEqual([text, text.length]);
        const [start = 0, end = 0] = [first, other]
          .map((at) => at % (text.length + 1))
          .toSorted((a, b) => a - b);
        expect([kept.from(start), kept.from(start, end)]).toEqual([
          text.slice(start),
          text.slice(start, end),
        ]);
        const sample = sampleOf(pieces);
        expect([sample.beginning, sample.chars]).toEqual([text, text.length]);
      },
    ),
    propertyRun(200),
  );
});

test('a sample of a text that is too long has its first 262,144 code units, and its full size', () => {
  const [first, second] = ['a'.repeat(262_100), 'é'.repeat(100)];
  const sample = sampleOf([first, second, second, second, 'b'.repeat(1_000)]);
  expect(sample.beginning).toBe(first + 'é'.repeat(44));
  expect(sample.chars).toBe(262_100 + 300 + 1_000);
});

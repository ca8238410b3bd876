import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TextSample } from '../../src/protocol/text-sample.ts';
import { propertyRun } from '../support/property-run.ts';

function sampleOf(texts: readonly string[]): TextSample {
  const sample = new TextSample();
  for (const text of texts) sample.add(text);
  return sample;
}

test('a sample is the text and its size, in whatever pieces it was added', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.string({ unit: 'grapheme-ascii', maxLength: 400 }),
    fc.constantFrom('', '\ud83d', '\ude00', 'é', '語'),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const sample = sampleOf(pieces);
      const text = pieces.join('');
      expect([sample.beginning, sample.chars]).toEqual([text, text.length]);
      // A pair of surrogates that was cut counts as two characters if the cut is between two kept pieces.
      const bytes = Buffer.byteLength(text);
      const cuts = Math.ceil(text.length / 256);
      expect(sample.bytes).toBeGreaterThanOrEqual(bytes);
      expect(sample.bytes).toBeLessThanOrEqual(bytes + 2 * cuts);
    }),
    propertyRun(200),
  );
});

test('a sample of a text that is too long has its first 262,144 code units, and its full size', () => {
  const [first, second] = ['a'.repeat(262_100), 'é'.repeat(100)];
  const sample = sampleOf([first, second, second, second, 'b'.repeat(1_000)]);
  expect(sample.beginning).toBe(first + 'é'.repeat(44));
  expect([sample.chars, sample.bytes]).toEqual([262_100 + 300 + 1_000, 262_100 + 600 + 1_000]);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Blocks, KeptDeltas } from '../../src/pipeline/claims/kept-deltas.ts';
import { propertyRun } from '../support/property-run.ts';

/** All deltas from one on, read as a client does that comes later. */
function readFrom(kept: KeptDeltas, first: number): readonly string[] {
  const read: string[] = [];
  for (;;) {
    const some = kept.from(first + read.length);
    if (some.length === 0) return read;
    read.push(...some);
  }
}

const delta = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  // More than is had at a time.
  fc.constantFrom('a'.repeat(300), 'b'.repeat(9_000)),
  // The halves of a pair of surrogates may come apart.
  fc.constantFrom('', '\ud83d', '\ude00', 'é', '語'),
);

test('deltas are had as they came, from any one on, before and after they are packed beside those of other answers', () => {
  const answers = fc.array(fc.array(delta, { maxLength: 140, size: 'max' }), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(answers, fc.nat(), (all, at) => {
      const blocks = new Blocks();
      const kept = all.map((deltas) => {
        const one = new KeptDeltas();
        for (const text of deltas) one.add(text);
        return { one, deltas, first: at % (deltas.length + 1) };
      });
      const check = (): void => {
        for (const { one, deltas, first } of kept) {
          expect(readFrom(one, 0)).toEqual(deltas);
          expect(readFrom(one, first)).toEqual(deltas.slice(first));
          expect(one.text).toBe(deltas.join(''));
        }
      };
      check();
      for (const { one } of kept) one.pack(blocks);
      check();
    }),
    propertyRun(60),
  );
});

test('an answer of as much as is kept of one fits into a block', () => {
  for (const deltas of [['語'.repeat(131_068)], Array.from({ length: 26_214 }, () => '語')]) {
    const kept = new KeptDeltas();
    for (const text of deltas) kept.add(text);
    kept.pack(new Blocks());
    expect(kept.text).toBe(deltas.join(''));
  }
});

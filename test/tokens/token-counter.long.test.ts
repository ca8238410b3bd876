import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { createTokenCounter } from '../../src/tokens/token-counter.ts';

/** The size of the pieces that are counted at once, in UTF-16 code units. */
const pieceChars = 2_048;

describe('the thread that counts tokens', () => {
  test('keeps no memory of what it counted, however hard its words are', { timeout: 120_000 }, async () => {
    // What the tables leave of this heap is filled by 1,000 pieces, each of them one word that the tokenizer has to split.
    const resourceLimits = { maxOldGenerationSizeMb: 112, maxYoungGenerationSizeMb: 8 };
    const file = new URL('../../src/tokens/token-worker.ts', import.meta.url);
    const counter = createTokenCounter(systemClock, () => new Worker(file, { execArgv: [], resourceLimits }));
    const [firstLetter, letters] = [0xa000, 1_164];
    let letter = 0;
    for (let texts = 0; texts < 16; texts++) {
      // Its factor is coprime to the number of letters, so that no two words are the same.
      const codes = Array.from({ length: 128 * pieceChars }, () => (letter += 389 + texts) % letters);
      const text = codes.map((code) => String.fromCharCode(firstLetter + code)).join('');
      expect(await counter.count(text)).toBeGreaterThan(text.length);
    }
  });
});

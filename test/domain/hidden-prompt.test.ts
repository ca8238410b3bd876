import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MeasuredPrompt, namedPrompt } from '../../src/domain/money/hidden-prompt.ts';
import { mostInputTokens, mostTokensOf, unknownHiddenTokens } from '../../src/domain/money/hold-estimate.ts';
import { propertyRun } from '../support/property-run.ts';

const question = (bytes: number) => [{ role: 'user' as const, text: 'x'.repeat(bytes) }];

/** Shows a prompt an answer to a question of so many bytes, whose reported input has `added` tokens beyond the most. */
function show(prompt: MeasuredPrompt, bytes: number, added: number): number {
  const mostTokens = mostTokensOf(question(bytes));
  const inputTokens = mostTokens + added;
  prompt.saw({ inputTokens, mostTokens, turns: 1 });
  return inputTokens;
}

describe('a measured hidden prompt', () => {
  test('is 4,096 tokens until 1,000 short answers were seen, and then nothing if none showed any', () => {
    const prompt = new MeasuredPrompt();
    for (let seen = 0; seen < 999; seen++) show(prompt, 2, -20);
    expect(prompt.tokens).toBe(unknownHiddenTokens);
    show(prompt, 2, 0);
    expect(prompt.tokens).toBe(0);
  });

  test('says nothing of long questions', () => {
    const prompt = new MeasuredPrompt();
    for (let seen = 0; seen < 3_000; seen++) show(prompt, 513, -20);
    expect(prompt.tokens).toBe(unknownHiddenTokens);
  });

  test('begins with what is known of the provider, and grows with the first answer that shows more', () => {
    const prompt = new MeasuredPrompt(0);
    expect(prompt.tokens).toBe(0);
    show(prompt, 40, 300);
    // Of the 40 bytes of text 10 are its usual tokens: the rest may be of the prompt, too.
    expect(prompt.tokens).toBe(330);
  });

  test('covers the input of each of the last 1,000 answers to short questions, and forgets what is older than 2,000', () => {
    const answer = fc.record({ bytes: fc.nat({ max: 600 }), added: fc.integer({ min: -500, max: 9_000 }) });
    fc.assert(
      fc.property(
        fc.array(answer, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 3_500 }),
        (kinds, count) => {
          const prompt = new MeasuredPrompt();
          const seen: { bytes: number; inputTokens: number; most: number }[] = [];
          for (let at = 0; at < count; at++) {
            // Each kind comes in a run of its own, so that old ones can be forgotten.
            const kind = kinds[Math.floor((at / count) * kinds.length)];
            if (kind === undefined) continue;
            const inputTokens = show(prompt, kind.bytes, kind.added);
            if (kind.bytes <= 512)
              seen.push({ bytes: kind.bytes, inputTokens, most: mostTokensOf(question(kind.bytes)) });
          }
          for (const { bytes, inputTokens } of seen.slice(-1_000))
            expect(mostInputTokens(question(bytes), prompt.tokens)).toBeGreaterThanOrEqual(inputTokens);
          const ofLast = seen
            .slice(-2_000)
            .map(({ inputTokens, most }) => (inputTokens > most ? inputTokens : 0));
          expect(prompt.tokens).toBeLessThanOrEqual(seen.length < 1_000 ? Infinity : Math.max(...ofLast));
        },
      ),
      propertyRun(50),
    );
  });
});

test('a prompt that the config names stays as long, whatever is seen', () => {
  const prompt = namedPrompt(7);
  prompt.saw({ inputTokens: 9_000, mostTokens: 33, turns: 1 });
  expect(prompt.tokens).toBe(7);
});

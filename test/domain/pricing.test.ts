import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { holdFor } from '../../src/domain/money/hold-estimate.ts';
import { costOf, free, noTokens, priceFor } from '../../src/domain/money/pricing.ts';
import { maxNanos } from '../../src/shared/money.ts';
import { propertyRun } from '../support/property-run.ts';
import { modelPrice } from '../support/model-price.ts';

/** 0.15, 0.075, 0.20 and 0.60 USD per million tokens. */
const price = modelPrice({
  input: 150_000_000,
  cachedInput: 75_000_000,
  cacheWrite: 200_000_000,
  output: 600_000_000,
});
const tokens = (
  inputTokens: number,
  cachedInputTokens: number,
  outputTokens: number,
  cacheWriteTokens = 0,
) => ({
  inputTokens,
  cachedInputTokens,
  cacheWriteTokens,
  outputTokens,
});

describe('the cost of tokens', () => {
  test.each<[string, ReturnType<typeof tokens>, number]>([
    ['nothing', tokens(0, 0, 0), 0],
    ['tokens that are not counted', { ...noTokens }, 0],
    ['a million of input', tokens(1_000_000, 0, 0), 150_000_000],
    ['a million of output', tokens(0, 0, 1_000_000), 600_000_000],
    ['input of which half was cached', tokens(1_000_000, 500_000, 0), 112_500_000],
    ['some of each', tokens(11, 3, 7), 8 * 150 + 3 * 75 + 7 * 600],
    [
      'input of which some was written to the cache',
      tokens(11, 3, 7, 2),
      6 * 150 + 3 * 75 + 2 * 200 + 7 * 600,
    ],
  ])('%s is exact', (_name, used, nanos) => {
    expect(costOf(used, price)).toBe(nanos);
  });

  test('is rounded up once, over all kinds together', () => {
    const tiny = modelPrice({ input: 1, cachedInput: 1, output: 1 });
    expect(costOf(tokens(1, 0, 0), tiny)).toBe(1);
    expect(costOf(tokens(500_000, 0, 500_000), tiny)).toBe(1);
    expect(costOf(tokens(500_000, 0, 500_001), tiny)).toBe(2);
  });

  test('is exact where floating-point numbers are not', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 1e9 }),
        fc.nat({ max: 1e9 }),
        fc.nat({ max: 1e11 }),
        (input, output, each) => {
          const sum = (BigInt(input) + BigInt(output)) * BigInt(each);
          const expected = (sum + 999_999n) / 1_000_000n;
          const cost = costOf(tokens(input, 0, output), modelPrice({ input: each, output: each }));
          expect(cost).toBe(expected > BigInt(maxNanos) ? maxNanos : Number(expected));
        },
      ),
      propertyRun(1_000),
    );
  });
});

describe('the hold for a request', () => {
  /** The tokens that a strict hold allows an upstream to add to a prompt. */
  const hidden = 4_096;
  const ask = (text: string, maxOutputTokens: number | null = null) => ({
    turns: [{ role: 'user' as const, text }],
    maxOutputTokens,
  });

  test('is nothing for a free model', () => {
    expect(holdFor(ask('x'.repeat(1_000), 1_000), free, { holdTokens: 10, strict: true })).toBe(0);
  });

  test('counts the output by the client’s own cap, or else by the model’s allowance', () => {
    const [capped, open] = [ask('', 100), ask('')];
    const terms = { holdTokens: 1_024, strict: false };
    expect(holdFor(capped, price, terms)).toBe(32 * 200 + 100 * 600);
    expect(holdFor(open, price, terms)).toBe(32 * 200 + 1_024 * 600);
  });

  test('counts every byte of input as a token, and a hidden prompt, in strict mode', () => {
    const terms = { holdTokens: 0, strict: true };
    expect(holdFor(ask('aé🌍'), price, terms)).toBe((7 + 32 + hidden) * 200);
    expect(holdFor(ask('aé🌍'), price, { ...terms, strict: false })).toBe((2 + 32) * 200);
  });

  test.each([['cachedInput'], ['cacheWrite']])('covers the cost even if %s is the dearest input', (kind) => {
    const odd = modelPrice({ input: 1_000_000, [kind]: 3_000_000 });
    expect(holdFor(ask(''), odd, { holdTokens: 0, strict: true })).toBe((32 + hidden) * 3);
  });

  test('uses the line for long inputs as soon as the input may be long', () => {
    const above = { ...modelPrice({ input: 2_000_000, output: 4_000_000 }), inputTokens: 100 + hidden };
    const tiered = modelPrice({ input: 1_000_000, output: 1_000_000, above });
    const terms = { holdTokens: 10, strict: true };
    expect(holdFor(ask('x'.repeat(68)), tiered, terms)).toBe(100 + hidden + 10);
    expect(holdFor(ask('x'.repeat(69)), tiered, terms)).toBe((101 + hidden) * 2 + 10 * 4);
    const cheaper = {
      ...tiered,
      above: { ...above, input: 500_000, cacheWrite: 0, cachedInput: 0, output: 0 },
    };
    expect(holdFor(ask('x'.repeat(69)), cheaper, terms)).toBe(101 + hidden + 10);
  });
});

describe('the line of a price', () => {
  const above = { ...modelPrice({ input: 6, output: 22 }), inputTokens: 200_000 };
  const { above: _above, ...base } = modelPrice({ input: 3, output: 15 });

  test('is the one for long inputs only above its threshold', () => {
    expect(priceFor({ ...base, above }, 200_000)).toEqual(base);
    expect(priceFor({ ...base, above }, 200_001)).toMatchObject({ input: 6, cacheWrite: 6, output: 22 });
    expect(priceFor({ ...base, above: null }, 200_001)).toEqual(base);
  });
});

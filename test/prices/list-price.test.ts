import { calcPrice, waitForUpdate } from '@pydantic/genai-prices';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { priceAt } from '../../src/domain/money/price-changes.ts';
import { costOf, priceFor } from '../../src/domain/money/pricing.ts';
import type { PaidTokens } from '../../src/domain/money/pricing.ts';
import { findListPrice, findPriceAt } from '../../src/prices/find-price.ts';
import { listPrice, once, readFactor } from '../../src/prices/list-price.ts';
import { propertyRun } from '../support/property-run.ts';

const providers = (await waitForUpdate()) ?? [];
const all = providers.flatMap((provider) =>
  provider.models.flatMap((model) => {
    const price = listPrice(model, once);
    return typeof price === 'string' ? [] : [{ provider: provider.id, model, ...price }];
  }),
);

/** A rate of the list in billionths of a dollar: rounded up, unless what is beyond them is less than a millionth of one. */
function exactly(rate: number): bigint {
  const [whole = '', fraction = ''] = rate.toFixed(20).split('.');
  const digits = BigInt(whole + fraction);
  const nano = 10n ** 11n;
  const trace = nano / 1_000_000n;
  return (digits + (digits % nano <= trace ? 0n : nano - 1n)) / nano;
}

/** What usage costs, by the rates of a time and exact arithmetic: USD in billionths, rounded up once. */
function exactNanos(rates: Readonly<Record<string, unknown>>, tokens: PaidTokens): number {
  const rateOf = (name: string): number | null => {
    const rate = rates[name];
    if (typeof rate !== 'object' || rate === null) return typeof rate === 'number' ? rate : null;
    const { base, tiers } = rate as { base: number; tiers: readonly { start: number; price: number }[] };
    return tiers.findLast(({ start }) => tokens.inputTokens > start)?.price ?? base;
  };
  const input = rateOf('input_mtok') ?? 0;
  const parts: readonly (readonly [count: number, rate: number])[] = [
    [tokens.inputTokens - tokens.cachedInputTokens - tokens.cacheWriteTokens, input],
    [tokens.cachedInputTokens, rateOf('cache_read_mtok') ?? input],
    [tokens.cacheWriteTokens, rateOf('cache_write_mtok') ?? input],
    [tokens.outputTokens, rateOf('output_mtok') ?? 0],
  ];
  const millions = parts.reduce((sum, [count, rate]) => sum + BigInt(count) * exactly(rate), 0n);
  const perRequest = (exactly(rateOf('requests_kcount') ?? 0) + 999n) / 1_000n;
  return Number((millions + 999_999n) / 1_000_000n + perRequest);
}

/** Usage of every size, and that at each tier's boundary. */
function usageOf(boundary: number | null): fc.Arbitrary<PaidTokens> {
  const sizes = fc.oneof(
    fc.nat(2_000),
    fc.nat(2_000_000),
    ...(boundary === null ? [] : [fc.integer({ min: boundary - 1, max: boundary + 1 })]),
  );
  return fc
    .record({ input: sizes, output: fc.nat(200_000), cached: fc.nat(100), written: fc.nat(100) })
    .map(({ input, output, cached, written }) => {
      const cachedInputTokens = Math.floor((input * cached) / 200);
      return {
        inputTokens: input,
        cachedInputTokens,
        cacheWriteTokens: Math.floor(((input - cachedInputTokens) * written) / 100),
        outputTokens: output,
      };
    });
}

describe('a price of the list', () => {
  test('was read of most models', () => {
    expect(providers.length).toBeGreaterThan(30);
    expect(all.length).toBeGreaterThan(1_000);
  });

  test.each([...new Set(all.map(({ provider }) => provider))])(
    'charges for %s what exact arithmetic over its rates does, and what the package does but for its rounding',
    (provider) => {
      const models = all.filter((one) => one.provider === provider);
      const times = fc.integer({ min: Date.UTC(2025, 0, 1), max: Date.UTC(2028, 0, 1) });
      const usages = fc.nat(models.length - 1).chain((at) =>
        fc.record({
          at: fc.constant(at),
          atMs: times,
          tokens: usageOf(models[at]?.price.above?.inputTokens ?? null),
        }),
      );
      fc.assert(
        fc.property(usages, ({ at, atMs, tokens }) => {
          const one = models[at];
          if (one === undefined) return;
          const rates = ratesAt(one.model, atMs);
          // The package counts a kind without a price as input, too.
          const { inputTokens, outputTokens } = tokens;
          const counted = calcPrice(
            {
              input_tokens: inputTokens,
              cache_read_tokens: 'cache_read_mtok' in rates ? tokens.cachedInputTokens : 0,
              cache_write_tokens: 'cache_write_mtok' in rates ? tokens.cacheWriteTokens : 0,
              output_tokens: outputTokens,
            },
            one.model.id,
            {
              timestamp: new Date(atMs),
              provider: {
                id: 'p',
                name: 'p',
                api_pattern: 'p',
                models: [{ ...one.model, match: { equals: one.model.id } }],
              },
            },
          );
          const charged = costOf(tokens, priceFor(priceAt(one, atMs), inputTokens));
          expect(charged).toBe(exactNanos(rates, tokens));
          // It counts in binary fractions, of which each line adds some, and knows nothing of billionths.
          expect(Math.abs(charged - (counted?.total_price ?? 0) * 1e9)).toBeLessThan(5);
        }),
        propertyRun(300),
      );
    },
  );
});

/** The rates of a model at a time, by the rule that the package's documentation has. */
function ratesAt({ prices }: (typeof all)[number]['model'], atMs: number): Readonly<Record<string, unknown>> {
  if (!Array.isArray(prices)) return prices;
  const ofDay = new Date(atMs).toISOString().slice(11, 19);
  const found = prices.findLast(({ constraint }) => {
    if (constraint === undefined) return true;
    if (constraint.type === 'start_date')
      return new Date(atMs).toISOString().slice(0, 10) >= constraint.start_date;
    return ofDay >= constraint.start_time.slice(0, 8) && ofDay < constraint.end_time.slice(0, 8);
  });
  return (found ?? prices[0])?.prices ?? {};
}

describe('the price of a model', () => {
  const model = (prices: Parameters<typeof listPrice>[0]['prices']) => listPrice({ prices }, once);

  test('is exact in billionths of a dollar, also where the list has traces of binary fractions', () => {
    expect(model({ input_mtok: 0.18000000000000002, output_mtok: 0.000000001 })).toMatchObject({
      price: {
        input: 180_000_000,
        cachedInput: 180_000_000,
        cacheWrite: 180_000_000,
        output: 1,
        request: 0,
        above: null,
      },
    });
  });

  test('is rounded up where it has more digits than billionths', () => {
    expect(model({ input_mtok: 0.08333333333333334, output_mtok: 4e-10 })).toMatchObject({
      price: { input: 83_333_334, output: 1 },
    });
  });

  test('is refused where a time can not be read', () => {
    const until = { type: 'time_of_date' as const, start_time: '01:00:00Z', end_time: '02:00:00' };
    expect(
      model([
        { prices: { input_mtok: 1, output_mtok: 1 } },
        { constraint: until, prices: { input_mtok: 2, output_mtok: 2 } },
      ]),
    ).toBe('a time from which it has another price is not understood here');
  });

  test('of requests is that of a thousand of them, divided', () => {
    expect(model({ input_mtok: 1, output_mtok: 1, requests_kcount: 12 })).toMatchObject({
      price: { request: 12_000_000 },
    });
  });

  test('has another line above a number of input tokens', () => {
    const tiered = (base: number, price: number) => ({ base, tiers: [{ start: 200_000, price }] });
    expect(
      model({ input_mtok: tiered(3, 6), output_mtok: tiered(15, 22.5), cache_read_mtok: 0.3 }),
    ).toMatchObject({
      price: {
        input: 3_000_000_000,
        output: 15_000_000_000,
        cachedInput: 300_000_000,
        above: {
          inputTokens: 200_000,
          input: 6_000_000_000,
          output: 22_500_000_000,
          cachedInput: 300_000_000,
        },
      },
    });
  });

  test('changes from a day on, and in a part of each day, also over midnight', () => {
    const found = model([
      { prices: { input_mtok: 1, output_mtok: 1 } },
      {
        constraint: { type: 'start_date', start_date: '2026-08-17' },
        prices: { input_mtok: 2, output_mtok: 2 },
      },
      {
        constraint: { type: 'time_of_date', start_time: '23:00:00Z', end_time: '01:30:00+00:00' },
        prices: { input_mtok: 3, output_mtok: 3 },
      },
    ]);
    if (typeof found === 'string') throw new Error(found);
    const inputAt = (time: string): number => priceAt(found, Date.parse(time)).input / 1e9;
    expect(inputAt('2026-08-16T22:59:59.999Z')).toBe(1);
    expect(inputAt('2026-08-17T12:00:00Z')).toBe(2);
    expect(inputAt('2026-08-17T23:00:00Z')).toBe(3);
    expect(inputAt('2026-08-18T01:29:59.999Z')).toBe(3);
    expect(inputAt('2026-08-18T01:30:00Z')).toBe(2);
  });

  test.each([
    [{ input_mtok: 1 }, 'it has no price of text as output'],
    [{ output_mtok: 1 }, 'it has no price of text as input'],
    [
      { input_mtok: 1, output_mtok: 1, output_image_mtok: 30 },
      "it is billed by 'output_image_mtok', too, which is not counted here",
    ],
    [
      { input_mtok: 1, output_mtok: 1, of_a_later_list: 1 },
      "it is billed by 'of_a_later_list', too, which is not counted here",
    ],
    [
      { input_mtok: 1, output_mtok: 1, output_reasoning_mtok: 3 },
      "it is billed by 'output_reasoning_mtok', too, which is not counted here",
    ],
  ])('is refused where it could not be charged as the provider does: %j', (prices, reason) => {
    expect(model(prices)).toBe(reason);
  });

  test('is multiplied, and rounded up', () => {
    const factor = readFactor('1.333333333');
    if (factor === null) throw new Error('no factor');
    expect(listPrice({ prices: { input_mtok: 0.000000001, output_mtok: 3 } }, factor)).toMatchObject({
      price: { input: 2, output: 3_999_999_999 },
    });
  });

  test.each(['0', '0.0', '-1', '1000.1', '1e3', '', '1.', '.5', '1.0000000001', '9'.repeat(30)])(
    'is not multiplied by %s',
    (text) => expect(readFactor(text)).toBeNull(),
  );
});

test('every name that is shown is found, and is that of its own model', () => {
  for (const { provider, model } of all)
    expect(findListPrice(`${provider}/${model.id}`)).toEqual(listPrice(model, once));
});

test.each([
  ['openai/gpt-4o-mini-2024-07-18', 'openai/gpt-4o-mini'],
  ['anthropic/claude-sonnet-4-5-20250929', 'anthropic/claude-sonnet-4-5'],
  ['anthropic/claude-sonnet-4-20250514', 'anthropic/claude-sonnet-4-0'],
  ['anthropic/claude-4-sonnet-20250514', 'anthropic/claude-sonnet-4-0'],
  ['anthropic/claude-3-5-haiku-20241022', 'anthropic/claude-3-5-haiku-latest'],
  ['google/gemini-1.5-pro-002', 'google/gemini-1.5-pro'],
  ['google/gemini-2.0-flash-001', 'google/gemini-2.0-flash'],
  ['google/gemini-2.0-flash-exp', 'google/gemini-2.0-flash'],
  ['google/gemini-2.5-flash-preview-05-20', 'google/gemini-2.5-flash-preview'],
  ['google/gemini-2.5-pro-preview-06-05', 'google/gemini-2.5-pro'],
  ['perplexity/perplexity/sonar', 'perplexity/sonar'],
])('%s is found as a name of %s', (dated, name) => {
  expect(findListPrice(dated)).toEqual(findListPrice(name));
});

test.each([
  'deepseek/deepseek-chatty',
  'anthropic/claude-sonnet-5-max',
  'google/gemini-2.5-pro-foo',
  'openai/ gpt-4o-mini',
])('%s begins like a name of the list, and may have another price: it is refused', (name) =>
  expect(findListPrice(name)).toMatch(/^the list of prices has no model/),
);

test.each([
  ['https://api.openai.com/v1', 'gpt-4o-mini', 'object'],
  ['https://api.openai.com.example/v1', 'gpt-4o-mini', 'string'],
  ['https://api.together.ai/v1', 'meta-llama/Llama-3.3-70B-Instruct-Turbo', 'object'],
  ['https://api.together.ai.example/v1', 'meta-llama/Llama-3.3-70B-Instruct-Turbo', 'string'],
  ['https://api.moonshot.ai/v1', 'kimi-k2-0905-preview', 'object'],
  ['https://api.moonshot.example.com/v1', 'kimi-k2-0905-preview', 'string'],
  ['https://api.perplexity.ai/v1', 'perplexity/sonar', 'object'],
])('at %s, %s is priced only where that is the provider', (url, model, kind) => {
  expect(typeof findPriceAt(url, model)).toBe(kind);
});

test('a name that the list does not have is refused with those that are nearest', () => {
  expect(findListPrice('openai/gpt-4o-minim')).toMatch(
    /no model 'gpt-4o-minim' of openai; it has gpt-4o-mini, /,
  );
  expect(findListPrice('opnai/gpt-4o')).toMatch(/no provider 'opnai'/);
  expect(findListPrice('gpt-4o')).toMatch(/expected the provider/);
  expect(findPriceAt('http://127.0.0.1:1/v1', 'x')).toMatch(/no provider with the address/);
  // The list has it for what records audio, and a price of text beside it is none.
  expect(findListPrice('openai/whisper-1')).toMatch(/can't be charged|can be charged: it has no price/);
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { propertyRun } from '../../support/property-run.ts';
import { entry, importEntries, partOf } from './imported.ts';

/** The amount of a text in decimal notation, in units of 10^-30. */
function exactly(text: string): bigint {
  const [, whole = '', fraction = '', power = '0'] = /^(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  return BigInt(whole + fraction) * 10n ** BigInt(30 - fraction.length + Number(power));
}

/** Prices of a token as people write them: digits, and where the point or the exponent is. */
const written = fc
  .record({
    digits: fc.integer({ min: 1, max: 99_999 }),
    places: fc.integer({ min: 5, max: 15 }),
    form: fc.nat(3),
  })
  .map(({ digits, places, form }) => {
    const text = String(digits);
    if (form === 0) return `${text}e-${places}`;
    if (form === 1)
      return `${text[0]}.${text.slice(1) || '0'}E-${String(places - text.length + 1).padStart(2, '0')}`.replace(
        'E--',
        'E+',
      );
    const fraction = text.padStart(places, '0');
    const plain = `${fraction.slice(0, -places) || (form === 2 ? '0' : '')}.${fraction.slice(-places)}`;
    return form === 2 ? `${plain}00` : plain;
  });

describe('own prices', () => {
  test('of a token become those of a million, to the last digit', async () => {
    const pairs = fc.array(fc.tuple(written, written), { minLength: 40, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(pairs, async (prices) => {
        const entries = prices.map(([input, output], index) =>
          entry(
            `m${index}`,
            `model: groq/x, input_cost_per_token: ${input}, output_cost_per_token: "${output}"`,
          ),
        );
        const { config, stderr } = await importEntries(entries);
        expect(stderr).toBe('');
        for (const [index, [input, output]] of prices.entries()) {
          const price = config.models[`m${index}`]?.['price'] as Record<'input' | 'output', string>;
          expect(exactly(price.input)).toBe(exactly(input) * 1_000_000n);
          expect(exactly(price.output)).toBe(exactly(output) * 1_000_000n);
        }
      }),
      propertyRun(10),
    );
  });

  test('have those of cached input, and of long prompts', async () => {
    const { config } = await importEntries([
      entry(
        'a',
        'model: groq/x',
        `model_info: { input_cost_per_token: 3e-06, output_cost_per_token: 0.000015, cache_read_input_token_cost: 0.0000003,
          cache_creation_input_token_cost: 3.75e-6, input_cost_per_token_above_200k_tokens: 6e-6 }`,
      ),
    ]);
    expect(config.models['a']?.['price']).toEqual({
      input: '3',
      cachedInput: '0.3',
      cacheWrite: '3.75',
      output: '15',
      above: { inputTokens: 200_000, input: '6', cachedInput: '0.3', cacheWrite: '3.75', output: '15' },
    });
  });

  test('of nothing make a model free, and what is no amount is no price', async () => {
    const { config, stdout } = await importEntries([
      entry('a', 'model: openai/gpt-4o, input_cost_per_token: 0, output_cost_per_token: 0.0'),
      entry('b', 'model: openai/gpt-4o, input_cost_per_token: 0.1'),
      entry('c', 'model: openai/gpt-4o, input_cost_per_token: 1e-20, output_cost_per_token: os.environ/X'),
      entry('d', 'model: openai/gpt-4o, input_cost_per_token: 10, output_cost_per_token: 1'),
    ]);
    const price = 'list';
    expect(config.models).toMatchObject({ a: { free: true }, b: { price }, c: { price }, d: { price } });
    expect(partOf(stdout, 'Taken')).toContain('input_cost_per_token: price, in USD per million tokens (a)\n');
    expect(partOf(stdout, 'Changed')).toContain(
      'input_cost_per_token: not both of input and output, as numbers up to 9: the public list counts, else what is not there is 0 (b, c, d)\n',
    );
  });

  test('of input or output alone count where the list has none, and the other one is 0, as it is there', async () => {
    const at = 'api_base: "http://127.0.0.1:8000/v1"';
    const { config, written: text } = await importEntries([
      entry('a', `model: openai/own, ${at}, output_cost_per_token: 1.5e-6`),
      entry('b', `model: openai/own, ${at}, input_cost_per_token: 2e-6`),
      // What can't be read is no 0: the file has a warning.
      entry('c', `model: openai/own, ${at}, input_cost_per_token: 2e-6, output_cost_per_token: "1,5e-5"`),
    ]);
    expect(config.models['a']?.['price']).toEqual({ input: '0', output: '1.5' });
    expect(config.models['b']?.['price']).toEqual({ input: '2', output: '0' });
    expect(config.models['c']).toMatchObject({ free: true });
    expect(text).toMatch(/^ {2}c: .*NO PRICE IS KNOWN/m);
  });

  test('of nothing below a threshold are prices above it, and a free entry makes no other one free', async () => {
    const at = 'api_base: "http://127.0.0.1:8000/v1"';
    const none = 'input_cost_per_token: 0, output_cost_per_token: 0';
    const { config, stdout } = await importEntries(
      [
        entry('a', `model: openai/own, ${at}, ${none}, input_cost_per_token_above_128k_tokens: 1e-6`),
        entry('b', `model: openai/own, ${at}, ${none}`),
        entry('b', 'model: openai/gpt-4o, input_cost_per_token: 2.5e-6, output_cost_per_token: 1e-5'),
        entry('c', `model: openai/own, ${at}, ${none}`),
        entry('c', 'model: openai/gpt-4o'),
        entry('d', `model: openai/own, ${at}, ${none}`),
      ],
      'litellm_settings: { fallbacks: [{ d: [b] }] }\n',
    );
    expect(config.models).toMatchObject({
      a: { price: { input: '0', output: '0', above: { inputTokens: 128_000, input: '1', output: '0' } } },
      b: { price: { input: '2.5', output: '10' } },
      c: { price: { list: 'openai/gpt-4o' } },
      d: { free: true },
    });
    const changed = partOf(stdout, 'Changed');
    expect(changed).toContain(
      'price: a model has one price here: that of its first entry with a price (b, c)',
    );
    expect(changed).toContain('a fallback answers that has a price (d)');
  });

  test('with more digits than an amount has are rounded up, never to nothing', async () => {
    const { config } = await importEntries([
      entry('a', 'model: groq/x, input_cost_per_token: 1e-20, output_cost_per_token: 0.0000001234567890123'),
    ]);
    expect(config.models['a']?.['price']).toEqual({ input: '0.000000001', output: '0.12345679' });
  });
});

test('prices above a second threshold are left out, which the report says; any threshold may be the first one', async () => {
  const own = 'input_cost_per_token: 1e-6, output_cost_per_token: 2e-6';
  const { config, stdout } = await importEntries([
    entry(
      'tiers',
      `model: openai/x, api_base: "http://127.0.0.1:8000/v1", ${own}, input_cost_per_token_above_256k_tokens: 3e-6, input_cost_per_token_above_512k_tokens: 4e-6`,
    ),
    entry(
      'odd',
      `model: openai/y, api_base: "http://127.0.0.1:8000/v1", ${own}, input_cost_per_token_above_128k_tokens: much`,
    ),
  ]);
  expect(config.models).toMatchObject({
    tiers: { price: { input: '1', above: { inputTokens: 256_000, input: '3', output: '2' } } },
    odd: { price: { input: '1', output: '2' } },
  });
  expect(config.models['odd']?.price).not.toHaveProperty('above');
  expect(partOf(stdout, 'Changed')).toContain(
    '*_above_*k_tokens: only the prices above the first threshold are taken (tiers, odd)\n',
  );
});

describe('prices of the list', () => {
  test('are found by the names with dates and versions that providers document', async () => {
    const names = [
      'anthropic/claude-sonnet-4-20250514',
      'anthropic/claude-3-7-sonnet-20250219',
      'gemini/gemini-1.5-pro-002',
      'gemini/gemini-2.5-pro-preview-06-05',
      'vertex_ai/gemini-2.0-flash-001',
      'together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo',
      'moonshot/kimi-k2-0905-preview',
      'perplexity/sonar',
    ];
    const { config } = await importEntries(names.map((name) => entry(name, `model: ${name}`)));
    for (const name of names) expect(config.models[name]).toHaveProperty('price');
  });

  test('are those of the base that an entry names, of the provider, or of the first route that has one', async () => {
    const { config, stdout } = await importEntries([
      entry(
        'based',
        'model: azure/gpt-4o-eu, api_base: "https://my.openai.azure.com"',
        'model_info: { base_model: gpt-4.1 }',
      ),
      entry('two', 'model: openai/gpt-4o'),
      entry('two', 'model: anthropic/claude-sonnet-4-5'),
      entry('own', 'model: openai/gpt-4o, api_base: "http://127.0.0.1:8000/v1", api_key: none'),
      entry('none', 'model: ollama/llama3'),
    ]);
    expect(config.models).toMatchObject({
      based: { price: { list: 'openai/gpt-4.1' } },
      two: { price: { list: 'openai/gpt-4o' } },
      own: { price: { list: 'openai/gpt-4o' } },
      none: { free: true },
    });
    const changed = partOf(stdout, 'Changed');
    expect(changed).toContain(
      'price: a model has one price here: that of its first entry with a price (two)\n',
    );
    expect(changed).toContain('price: not in the list: clients pay nothing until you write one (none)\n');
  });
});

import { expect, test } from 'vitest';
import { showPrices } from '../../../src/cli/prices/show-prices.ts';

test('prices are shown by the names that a config has for them, with the times at which they hold', async () => {
  const lines = (await showPrices('deepseek/deepseek-chat', {})).split('\n');
  expect(lines[0]).toMatch(/^MODEL +INPUT +CACHED +WRITTEN +OUTPUT +REQUEST +WHEN$/);
  const at = lines.findIndex((line) => line.startsWith('deepseek/deepseek-chat '));
  expect(lines[at]?.trim().split(/ +/)).toEqual([
    'deepseek/deepseek-chat',
    '0.135',
    '0.035',
    '0.135',
    '0.55',
  ]);
  expect(lines[at + 1]?.trim().replaceAll(/ +/g, ' ')).toBe('0.27 0.07 0.27 1.10 00:30 to 16:30 UTC');
});

test('a pattern stands for parts of a name, in any case', async () => {
  const { list, data } = JSON.parse(await showPrices('OpenAI/*mini', { json: true })) as {
    readonly list: unknown;
    readonly data: readonly {
      readonly name: string;
      readonly context_tokens: number | null;
      readonly price: { readonly input: string };
    }[];
  };
  expect(list).toEqual({ version: '0.1.8', published_at: '2026-09-23T00:00:00.000Z' });
  expect(data.length).toBeGreaterThan(3);
  for (const { name } of data) expect(name).toMatch(/openai\/.*mini/);
  expect(data.find(({ name }) => name === 'openai/gpt-4o-mini')).toMatchObject({
    context_tokens: 128_000,
    price: { input: '0.15' },
  });
});

test('says what it has of a name without a price of text', async () => {
  await expect(showPrices('openai/whisper', {})).rejects.toThrow(/of the \d+ models with 'openai\/whisper'/);
  await expect(showPrices('no such model', {})).rejects.toThrow(
    "the list of prices has no model with 'no such model' in its name",
  );
});

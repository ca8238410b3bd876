import { expect, test } from 'vitest';
import { entry, importEntries } from './imported.ts';

test('a config of LiteLLM with 5,000 models and as many aliases is taken over', async () => {
  const entries = Array.from({ length: 5_000 }, (_, at) =>
    entry(
      `model-${at}`,
      `<<: *base, model: openai/gpt-4o-${at}, rpm: ${at + 1}, api_key: os.environ/KEY_${at % 50}`,
    ),
  );
  const { code, stderr, config } = await importEntries(
    [
      entry('base', 'model: openai/gpt-4o').replace('litellm_params: {', 'litellm_params: &base {'),
      ...entries,
    ],
    'litellm_settings: { default_fallbacks: [base] }\n',
  );
  expect([code, stderr]).toEqual([0, '']);
  expect(Object.keys(config.models)).toHaveLength(5_001);
  expect(Object.keys(config.upstreams)).toHaveLength(51);
});

import { describe, expect, test } from 'vitest';
import { runCommand } from '../../support/run-command.ts';
import { entry, importEntries, partOf } from './imported.ts';

const a = entry('chat', 'model: openai/gpt-4o, api_key: os.environ/A_KEY');
const b = entry('chat', 'model: openai/gpt-4o, api_key: os.environ/B_KEY');

describe('entries of one name', () => {
  test('become routes that share the requests, at upstreams that their keys tell apart', async () => {
    const { config } = await importEntries([a, b]);
    expect(Object.keys(config.upstreams)).toEqual(['openai-a', 'openai-b']);
    expect(config.models['chat']?.['routes']).toEqual([
      { upstream: 'openai-a', model: 'gpt-4o', weight: 1 },
      { upstream: 'openai-b', model: 'gpt-4o', weight: 1 },
    ]);
  });

  test.each([
    ['weight', [6, 2], [3, 1]],
    ['rpm', [60, 600], [1, 10]],
    ['tpm', [1_000, 1_500], [2, 3]],
    ['weight', [0.5, 0.25], [2, 1]],
  ])('have the shares that LiteLLM draws them by: %s %j', async (setting, given, wanted) => {
    const entries = given.map((value, index) =>
      entry('chat', `model: openai/m${index}, api_base: "http://127.0.0.1:8000/v1", ${setting}: ${value}`),
    );
    const { config } = await importEntries(entries);
    expect(config.models['chat']?.['routes']).toEqual(
      wanted.map((weight, index) => ({ upstream: 'local', model: `m${index}`, weight })),
    );
  });

  test('keep the order that they are given, and those without a share come last', async () => {
    const at = (model: string, more: string): string =>
      entry('chat', `model: ollama/${model}, api_base: "http://box:11434", ${more}`);
    const { config } = await importEntries([
      at('last', 'order: 3'),
      at('none', 'order: 1, weight: 0'),
      at('one', 'order: 1, weight: 1'),
      at('other', 'order: 1, weight: 1'),
      at('second', 'order: 2'),
    ]);
    const routes = config.models['chat']?.['routes'] as readonly object[];
    // The first entry of the least order has a weight of 0, which is a weight, too.
    expect(routes).toEqual([
      { upstream: 'ollama', model: 'one', weight: 1 },
      { upstream: 'ollama', model: 'other', weight: 1 },
      { upstream: 'ollama', model: 'none' },
      { upstream: 'ollama', model: 'second' },
      { upstream: 'ollama', model: 'last' },
    ]);
  });

  test.each([
    ['least-busy', 'least_in_flight'],
    ['latency-based-routing', 'fastest'],
    ['usage-based-routing-v2', 'least_in_flight'],
  ])('are chosen by a policy for the strategy %s', async (strategy, policy) => {
    const { config } = await importEntries([a, b], `router_settings: { routing_strategy: ${strategy} }\n`);
    expect(config.models['chat']).toMatchObject({ policy });
    expect(config.models['chat']?.['routes']).toEqual([
      { upstream: 'openai-a', model: 'gpt-4o' },
      { upstream: 'openai-b', model: 'gpt-4o' },
    ]);
  });
});

describe('fallbacks', () => {
  const entries = [
    a,
    b,
    entry('large', 'model: anthropic/claude-sonnet-4-5'),
    entry('small', 'model: groq/x'),
  ];

  test('are further routes, in their order, and a model with some has no policy that would mix them', async () => {
    const { config, stdout, written } = await importEntries(
      entries,
      `router_settings:
  routing_strategy: least-busy
  fallbacks: [{ chat: [large, chat, gone, small] }]
litellm_settings: { default_fallbacks: [small] }
`,
    );
    expect(config.models['chat']).toEqual({
      routes: [
        { upstream: 'openai-a', model: 'gpt-4o', weight: 1 },
        { upstream: 'openai-b', model: 'gpt-4o', weight: 1 },
        { upstream: 'anthropic', model: 'claude-sonnet-4-5' },
        { upstream: 'groq', model: 'x' },
      ],
      price: { list: 'openai/gpt-4o' },
    });
    expect(written).toContain('- { upstream: groq, model: x } # a fallback');
    expect(config.models['large']?.['routes']).toHaveLength(2);
    expect(config.models['small']?.['routes']).toHaveLength(1);
    expect(partOf(stdout, 'Changed')).toContain('router_settings.routing_strategy: left out where');
    expect(partOf(stdout, 'No counterpart')).toContain(
      'fallbacks: one of them is no model that is taken over (chat)',
    );
  });

  test('are those of an alias, and aliases may be fallbacks', async () => {
    const { config, stdout } = await importEntries(
      entries,
      `router_settings:
  model_group_alias: { al: small, big: large }
  fallbacks: [{ large: [al] }, { al: [chat] }]
`,
    );
    const upstreamsOf = (model: string): readonly unknown[] => {
      const routes = config.models[model]?.['routes'] as readonly { readonly upstream: string }[] | undefined;
      return (routes ?? []).map(({ upstream }) => upstream);
    };
    expect(upstreamsOf('large')).toEqual(['anthropic', 'groq']);
    // It has none of its own name.
    expect(upstreamsOf('big')).toEqual(['anthropic', 'groq']);
    expect(upstreamsOf('al')).toEqual(['groq', 'openai-a', 'openai-b']);
    expect(upstreamsOf('small')).toEqual(['groq']);
    expect(partOf(stdout, 'Taken')).toContain('router_settings.fallbacks: routes behind those of the model');
    expect(partOf(stdout, 'No counterpart')).toBe('  nothing\n');
  });

  test.each([
    ['fallbacks: [{ gone: [small] }]', 'those of a model that is not taken over are left out (gone)'],
    ['fallbacks: [{ small: [{ model: groq/y, api_key: x }] }]', 'one of them has settings of its own'],
    ['fallbacks: [small]', 'left out: expected names of models with lists'],
    ['default_fallbacks: [zzz]', 'one of them is no model that is taken over\n'],
    [
      'fallbacks: [{ small: [small] }, { small: [large] }]',
      'only the first list of a model is taken (small)',
    ],
  ])('that lead nowhere are named, and not as taken: %s', async (fallbacks, why) => {
    const { config, stdout } = await importEntries(entries, `litellm_settings: { ${fallbacks} }\n`);
    expect(config.models['small']?.['routes']).toHaveLength(1);
    const [name = ''] = fallbacks.split(':');
    expect(partOf(stdout, 'No counterpart')).toContain(`litellm_settings.${name}: ${why}`);
    expect(partOf(stdout, 'Taken')).not.toContain('fallbacks');
  });

  test('for long texts and refused ones have no counterpart', async () => {
    const { config, stdout } = await importEntries(
      entries,
      'litellm_settings: { context_window_fallbacks: [{ small: [large] }], content_policy_fallbacks: [{ small: [large] }] }\n',
    );
    expect(config.models['small']?.['routes']).toHaveLength(1);
    const left = partOf(stdout, 'No counterpart');
    expect(left).toContain('context_window_fallbacks: a text that is too long is refused');
    expect(left).toContain('content_policy_fallbacks: a text that a provider refuses');
  });
});

test('aliases become models with the same routes', async () => {
  const { config, stdout } = await importEntries(
    [a],
    'router_settings: { model_group_alias: { gpt-4: chat, hidden: { model: chat, hidden: true }, lost: gone } }\n',
  );
  expect(Object.keys(config.models)).toEqual(['chat', 'gpt-4', 'hidden']);
  expect(config.models['gpt-4']).toEqual(config.models['chat']);
  expect(partOf(stdout, 'No counterpart')).toContain('model_group_alias: leads to no model');
});

describe('a pattern', () => {
  test('becomes the models of the provider that have a public price, by their names', async () => {
    const { config, code } = await importEntries([
      entry('anthropic/*', 'model: anthropic/*'),
      entry('anthropic/claude-haiku-4-5', 'model: anthropic/claude-haiku-4-5, rpm: 5'),
      entry('fast-*', 'model: groq/llama-*'),
    ]);
    expect(code).toBe(0);
    const names = Object.keys(config.models);
    expect(names).toContain('anthropic/claude-sonnet-4-5');
    expect(names.filter((name) => name === 'anthropic/claude-haiku-4-5')).toHaveLength(1);
    expect(config.models['anthropic/claude-sonnet-4-5']).toEqual({
      routes: [{ upstream: 'anthropic', model: 'claude-sonnet-4-5' }],
      price: 'list',
    });
    expect(config.models['fast-3.3-70b-versatile']?.['routes']).toEqual([
      { upstream: 'groq', model: 'llama-3.3-70b-versatile' },
    ]);
  });

  test('alone, for a server of one’s own, becomes the list of that', async () => {
    const { config, folder } = await importEntries([
      entry('own/*', 'model: hosted_vllm/*, api_base: os.environ/VLLM_API_BASE, rpm: 60'),
    ]);
    expect(config).toEqual({
      upstreams: { vllm: { url: '${VLLM_API_BASE}', requestsPerMinute: 60 } },
      models: { from: 'vllm', rename: { '*': 'own/*' } },
    });
    const environment = { VLLM_API_BASE: 'http://127.0.0.1:8000/v1' };
    expect((await runCommand(['config', 'check', 'textgate.yaml'], folder, environment)).code).toBe(0);
  });
});

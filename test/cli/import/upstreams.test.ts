import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { readProvidersTable } from '../../support/providers-table.ts';
import { entry, importEntries, importText, partOf } from './imported.ts';

/** The tested settings of the documentation, beside the address and the key. */
const tested = [...readProvidersTable().values()].map((line) => settingsIn(parse(line) as object));

function settingsIn(line: object): object {
  return Object.fromEntries(Object.entries(line).filter(([name]) => !['url', 'apiKey'].includes(name)));
}

describe('an upstream', () => {
  test.each([
    ['gpt-4o', '', 'https://api.openai.com/v1', '${OPENAI_API_KEY}', 'gpt-4o'],
    ['openai/responses/o1-pro', '', 'https://api.openai.com/v1', '${OPENAI_API_KEY}', 'o1-pro'],
    ['claude-sonnet-4-5', '', 'https://api.anthropic.com/v1', '${ANTHROPIC_API_KEY}', 'claude-sonnet-4-5'],
    ['anthropic/x', 'api_base: "https://llm.example"', 'https://llm.example/v1', '${ANTHROPIC_API_KEY}', 'x'],
    ['gemini/x', '', 'https://generativelanguage.googleapis.com/v1beta', '${GEMINI_API_KEY}', 'x'],
    ['openrouter/a/b', '', 'https://openrouter.ai/api/v1', '${OPENROUTER_API_KEY}', 'a/b'],
    ['together_ai/a/b', '', 'https://api.together.ai/v1', '${TOGETHER_API_KEY}', 'a/b'],
    ['fireworks_ai/a', '', 'https://api.fireworks.ai/inference/v1', '${FIREWORKS_API_KEY}', 'a'],
    ['nvidia_nim/a', '', 'https://integrate.api.nvidia.com/v1', '${NVIDIA_NIM_API_KEY}', 'a'],
    ['perplexity/sonar', '', 'https://api.perplexity.ai/v1', '${PERPLEXITY_API_KEY}', 'perplexity/sonar'],
    ['huggingface/groq/a/b', '', 'https://router.huggingface.co/v1', '${HF_TOKEN}', 'a/b:groq'],
    [
      'dashscope/a',
      '',
      'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
      '${DASHSCOPE_API_KEY}',
      'a',
    ],
    ['ollama_chat/a', '', 'http://127.0.0.1:11434/v1', undefined, 'a'],
    ['ollama/a', 'api_base: "http://box:11434/"', 'http://box:11434/v1', undefined, 'a'],
    ['hosted_vllm/a', 'api_base: "http://box:8000/v1/"', 'http://box:8000/v1', undefined, 'a'],
    ['openai/a', 'api_base: "http://box:8000/v1/chat/completions"', 'http://box:8000/v1', undefined, 'a'],
    ['a', 'custom_llm_provider: openai, api_base: os.environ/BASE', '${BASE}', undefined, 'a'],
    ['openai/a', 'api_base: "http://${HOST}:80/v1"', 'http://${HOST}:80/v1', undefined, 'a'],
    [
      'openai/a',
      'api_base: "https://api.groq.com/openai/v1"',
      'https://api.groq.com/openai/v1',
      '${GROQ_API_KEY}',
      'a',
    ],
    [
      'azure/a',
      'api_base: "https://my.openai.azure.com/"',
      'https://my.openai.azure.com/openai/v1',
      '${AZURE_API_KEY}',
      'a',
    ],
    ['azure/o_series/a', 'api_base: os.environ/BASE', '${BASE}/openai/v1', '${AZURE_API_KEY}', 'a'],
    [
      'azure/a',
      'api_base: "https://gate.example/x", api_version: 2024-10-21',
      'https://gate.example/x/openai/deployments/a?api-version=2024-10-21',
      '${AZURE_API_KEY}',
      'a',
    ],
    [
      'bedrock/converse/openai.gpt-oss-120b-1:0',
      'aws_region_name: eu-west-1',
      'https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1',
      '${AWS_BEARER_TOKEN_BEDROCK}',
      'openai.gpt-oss-120b-1:0',
    ],
    [
      'vertex_ai/gemini-2.5-flash',
      'vertex_project: mine, vertex_location: global',
      'https://aiplatform.googleapis.com/v1/projects/mine/locations/global/endpoints/openapi',
      { command: ['gcloud', 'auth', 'print-access-token'], every: '30m' },
      'google/gemini-2.5-flash',
    ],
    [
      'gemini-2.5-flash',
      '',
      'https://${VERTEXAI_LOCATION}-aiplatform.googleapis.com/v1/projects/${VERTEXAI_PROJECT}/locations/${VERTEXAI_LOCATION}/endpoints/openapi',
      { command: ['gcloud', 'auth', 'print-access-token'], every: '30m' },
      'google/gemini-2.5-flash',
    ],
    ['databricks/a', '', '${DATABRICKS_API_BASE}', '${DATABRICKS_API_KEY}', 'a'],
    [
      'snowflake/a',
      'account_id: mine',
      'https://mine.snowflakecomputing.com/api/v2/cortex/v1',
      '${SNOWFLAKE_TOKEN}',
      'a',
    ],
  ])(
    'of %s (%s) has its address, its key and the tested settings',
    async (model, params, url, apiKey, there) => {
      const { stderr, config } = await importEntries([
        entry('m', `model: "${model}"${params && `, ${params}`}`),
      ]);
      expect(stderr).toBe('');
      const [[name, line] = ['', {}]] = Object.entries(config.upstreams);
      expect([line['url'], line['apiKey']]).toEqual([url, apiKey]);
      expect(tested).toContainEqual(settingsIn(line));
      expect(config.models['m']?.['routes']).toEqual([{ upstream: name, model: there }]);
    },
  );

  test('of Azure has the Responses protocol where LiteLLM calls a model by it', async () => {
    const { config } = await importEntries([
      entry('a', 'model: azure/responses/o3-pro, api_base: "https://my.openai.azure.com"'),
      entry('b', 'model: azure/gpt-4o, api_base: "https://my.openai.azure.com"'),
    ]);
    expect(config.upstreams['azure-responses']).toEqual({
      url: 'https://my.openai.azure.com/openai/v1',
      apiKey: '${AZURE_API_KEY}',
      authHeader: 'api-key',
      dialects: ['responses'],
    });
    expect(config.models['a']?.['routes']).toEqual([{ upstream: 'azure-responses', model: 'o3-pro' }]);
    expect(config.models['b']?.['routes']).toEqual([{ upstream: 'azure', model: 'gpt-4o' }]);
  });

  test('has what its entries set for it: limits of each model, and the longest silence of a stream', async () => {
    const { config } = await importEntries(
      [
        entry('a', 'model: groq/a, rpm: 60, tpm: "100000", max_parallel_requests: 4, timeout: 30'),
        entry('b', 'model: groq/a, rpm: 90, timeout: 700, stream_timeout: 12.5'),
        entry('c', 'model: groq/c, rpm: os.environ/RPM'),
        entry('d', 'model: openai/d'),
      ],
      'router_settings: { timeout: 900 }\n',
    );
    expect(config.upstreams['groq']).toMatchObject({
      timeouts: { firstByte: '15m', idle: '15m', total: '15m' },
      models: { a: { maxInFlight: 4, requestsPerMinute: 90, tokensPerMinute: 100_000 } },
    });
    expect(config.upstreams['openai']?.['timeouts']).toEqual({ firstByte: '15m', idle: '15m', total: '15m' });
  });

  test('has no key where that is a placeholder, and the variable of any other form', async () => {
    const at = (key: string): string =>
      entry('m', `model: openai/m, api_base: "http://box:8000/v1", api_key: "${key}"`);
    for (const key of ['none', 'EMPTY', 'sk-1234', 'fake-key', 'no-key-required', 'lm-studio', 'dummy']) {
      const { config, stdout } = await importEntries([at(key)]);
      expect(config.upstreams['box']).toEqual({ url: 'http://box:8000/v1' });
      expect(partOf(stdout, 'Changed')).toContain('api_key: a placeholder, which is left out (m)');
    }
    for (const key of ['os.environ/BOX_KEY', '${BOX_KEY}', '$BOX_KEY', '${BOX_KEY:-sk-secret}']) {
      const { config, written } = await importEntries([at(key)]);
      expect(config.upstreams['box']?.['apiKey']).toBe('${BOX_KEY}');
      expect(written).not.toContain('sk-secret');
    }
    const { config, stdout } = await importEntries([
      entry('m', 'model: openai/m, api_base: "http://box/v1"'),
    ]);
    expect(config.upstreams['box']).toEqual({ url: 'http://box/v1' });
    expect(partOf(stdout, 'Changed')).toContain(
      'api_key: none is sent, where LiteLLM sends OPENAI_API_KEY to this server (m)',
    );
  });

  test('has another variable for a key of the file than for those that LiteLLM takes from the environment', async () => {
    const { config } = await importEntries([
      entry('a', 'model: openai/gpt-4o, api_key: sk-live-0123456789'),
      entry('b', 'model: openai/gpt-4o'),
      entry('c', 'model: groq/x, api_key: dummy'),
    ]);
    const keys = Object.values(config.upstreams).map(({ apiKey }) => apiKey);
    expect(keys).toEqual(['${OPENAI_API_KEY_2}', '${OPENAI_API_KEY}', '${GROQ_API_KEY}']);
  });

  test('has a name of its own for each address and key', async () => {
    const azure = (host: string, key: string): string =>
      entry(
        'm',
        `model: azure/${host}-${key}, api_base: "https://${host}.openai.azure.com", api_key: os.environ/${key}`,
      );
    const { config } = await importEntries([
      azure('east', 'AZURE_KEY'),
      azure('west', 'AZURE_KEY'),
      azure('west', 'AZURE_KEY_TEAM_B'),
      entry('n', 'model: openai/n, api_base: "http://127.0.0.1:8001/v1"'),
      entry('n', 'model: openai/n, api_base: "http://127.0.0.1:8002/v1"'),
      entry('o', 'model: openai/o, api_base: "http://0.0.0.0:8003/v1"'),
    ]);
    expect(Object.keys(config.upstreams)).toEqual([
      'azure-east',
      'azure-west',
      'azure-west-team-b',
      'local-8001',
      'local-8002',
      'server',
    ]);
  });

  test('has the organization and the headers of its entries, those with a secret by a variable', async () => {
    const { config, written } = await importEntries([
      entry(
        'a',
        'model: openai/a, organization: os.environ/ORG, extra_headers: { X-Title: "blue$", X-Auth: abcdef, "not a name": x }',
      ),
    ]);
    expect(config.upstreams['openai']?.['headers']).toEqual({
      'OpenAI-Organization': '${ORG}',
      'X-Title': 'blue$$',
      'X-Auth': '${X_AUTH}',
    });
    expect(written).not.toContain('abcdef');
  });

  test('has the settings of a credential that its entry names', async () => {
    const { config } = await importEntries(
      [entry('a', 'model: azure/a, litellm_credential_name: eu')],
      `credential_list:
  - credential_name: eu
    credential_values: { api_key: os.environ/EU_KEY, api_base: "https://eu.openai.azure.com" }
`,
    );
    expect(config.upstreams).toMatchObject({
      azure: { url: 'https://eu.openai.azure.com/openai/v1', apiKey: '${EU_KEY}' },
    });
  });

  test('is written without a credential that is not in the file, which is said', async () => {
    const { config, stdout } = await importEntries([
      entry('a', 'model: azure/a, litellm_credential_name: eu'),
    ]);
    expect(config.upstreams).toHaveProperty('azure');
    expect(partOf(stdout, 'No counterpart')).toContain(
      'litellm_credential_name: credential_list has none of this name: write what it has into the upstream (a)',
    );
  });
});

test('parameters that clients of LiteLLM may send are not refused where it drops them', async () => {
  expect(
    (await importText('model_list: [{ model_name: a, litellm_params: { model: groq/a } }]')).config,
  ).not.toHaveProperty('compatibility');
  const { config } = await importEntries(
    [entry('a', 'model: groq/a')],
    'litellm_settings: { drop_params: True }\n',
  );
  expect(config.compatibility).toEqual({ unknownFields: 'ignore' });
});

import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { playProvider } from '../../support/examine.ts';
import { runCommand } from '../../support/run-command.ts';
import { startUpstream } from '../../support/scripted-upstream.ts';
import { serveHere } from '../../support/serve-here.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { entry, importEntries, importText, partOf } from './imported.ts';

const small = `
model_list:
  - model_name: chat
    litellm_params: { model: openai/gpt-4o-mini, api_key: os.environ/TEAM_KEY }
`;

const secret = 'sk-live-0123456789abcdef';

describe('textgate import litellm', () => {
  test('writes a config with which the gateway answers, at the prices of the other one', async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    playProvider(upstream);
    const params = `model: openai/tiny, api_base: "${upstream.url}", api_key: none`;
    const prices = 'input_cost_per_token: 0.00000015, output_cost_per_token: 6e-7';
    const { folder } = await importEntries([entry('chat', `${params}, ${prices}`)]);
    const gateway = serveHere(['serve', 'textgate.yaml', '--port', '0', '--admin-port', '0'], folder);
    const [, url = ''] = await gateway.printed(/textgate serves (\S+)\/v1/);
    const [key = ''] = await gateway.printed(/sk-tg-\S+/);
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: 'Hi' }] }),
    });
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'Hi there' } }] });
    // 3 tokens of input and 2 of output.
    expect(answer.headers.get('x-textgate-charge')).toContain('0.00000165');
    gateway.signal('SIGTERM');
    await gateway.finished;
  });

  test('writes a config that passes the check, and says which variables it needs', async () => {
    const { folder, code, stdout, stderr, config } = await importText(small);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^textgate\.yaml is written: 1 model at 1 upstream\n/);
    expect(stdout).toContain('The gateway reads TEAM_KEY.');
    expect(config).toEqual({
      upstreams: {
        openai: {
          url: 'https://api.openai.com/v1',
          apiKey: '${TEAM_KEY}',
          systemRole: 'developer',
          maxTokensField: 'max_completion_tokens',
        },
      },
      models: { chat: { routes: [{ upstream: 'openai', model: 'gpt-4o-mini' }], price: 'list' } },
    });
    const checked = await runCommand(['config', 'check', 'textgate.yaml'], folder, { TEAM_KEY: 'k' });
    expect(checked.stdout).toBe('textgate.yaml is valid\n');
  });

  test('never replaces a file, unless it is told to, and leaves no other one behind', async () => {
    const folder = makeTemporaryFolder();
    writeFileSync(join(folder, 'litellm.yaml'), small);
    writeFileSync(join(folder, 'textgate.yaml'), 'mine');
    const refused = await runCommand(['import', 'litellm', 'litellm.yaml'], folder);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(readFileSync(join(folder, 'textgate.yaml'), 'utf8')).toBe('mine');
    const forced = await runCommand(['import', 'litellm', 'litellm.yaml', '--force'], folder);
    expect(forced.code).toBe(0);
    expect(readFileSync(join(folder, 'textgate.yaml'), 'utf8')).toContain('gpt-4o-mini');
    expect(readdirSync(folder).toSorted()).toEqual(['litellm.yaml', 'textgate.yaml']);
  });

  test('copies no secret: neither into the file nor to the terminal', async () => {
    const { code, stdout, stderr, written, config } = await importEntries(
      [
        entry('a', `model: openai/gpt-4o, api_key: ${secret}`),
        entry('b', `model: openai/gpt-4o, api_key: ${secret}`),
        entry('c', `model: openai/gpt-4o, api_key: ${secret}-2, extra_headers: { X-Api-Key: ${secret}-3 }`),
        entry('d', 'model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY_2'),
        entry('e', `model: openai/x, api_base: "https://llm.example/v1?api_key=${secret}"`),
        entry('f', `model: openai/x, api_base: "https://user:${secret}@llm.example/v1"`),
      ],
      `general_settings: { master_key: ${secret}, database_url: "postgres://me:${secret}@db/litellm" }
environment_variables: { OPENAI_API_KEY: ${secret} }
`,
    );
    expect([code, stderr]).toEqual([0, '']);
    expect(written + stdout + stderr).not.toContain(secret);
    expect(Object.values(config.upstreams).map(({ apiKey, headers }) => [apiKey, headers])).toEqual([
      ['${OPENAI_API_KEY}', undefined],
      ['${OPENAI_API_KEY_3}', { 'X-Api-Key': '${X_API_KEY}' }],
      ['${OPENAI_API_KEY_2}', undefined],
    ]);
    expect(partOf(stdout, 'Changed')).toContain(
      'api_key: in the file itself: not copied, put it into the variable OPENAI_API_KEY (a, b)\n',
    );
    const left = partOf(stdout, 'No counterpart');
    expect(left).toMatch(/general_settings\.master_key: not carried over/);
    expect(left).toMatch(/general_settings\.database_url: not carried over/);
    expect(left).toMatch(/environment_variables: not carried over/);
    expect(left).toMatch(/model: api_base has a key in its query or path: .* \(e\)/);
    expect(left).toMatch(/model: api_base: expected an address without a user and password: .* \(f\)/);
  });

  test('says of every setting what became of it, also of one that it does not know', async () => {
    const { stdout } = await importEntries(
      [entry('a', 'model: groq/x, rpm: 10, temperature: 0.2, wobble: 3', 'model_info: { id: x }')],
      `litellm_settings:
  drop_params: True
  cache: true
  cache_params: { type: redis }
  success_callback: [langfuse]
  failure_callback: []
  set_verbose: False
  wibble: 3
guardrails: [{ guardrail_name: x }]
`,
    );
    expect(partOf(stdout, 'Changed')).toContain('rpm: requestsPerMinute');
    expect(partOf(stdout, 'Changed')).toContain('litellm_settings.drop_params: unknownFields: ignore');
    const left = partOf(stdout, 'No counterpart');
    expect(left).toContain('temperature: requests have their own (a)\n');
    expect(left).toContain('wobble, litellm_settings.wibble: not known here (a)\n');
    expect(left).toContain('model_info.id: descriptions of models are not kept (a)\n');
    expect(left).toContain('litellm_settings.cache, litellm_settings.cache_params: answers are not cached');
    expect(left).toContain('litellm_settings.success_callback: no text leaves the gateway');
    expect(left).toContain('guardrails: no text is inspected or changed\n');
    // What is off has no counterpart to miss.
    expect(stdout).not.toMatch(/failure_callback|set_verbose/);
  });

  test('leaves out what is no text, with the reason in the report and in the file', async () => {
    const { written, stdout, config } = await importEntries([
      entry('chat', 'model: openai/gpt-4o'),
      entry('mixed', 'model: openai/gpt-4o'),
      entry('mixed', 'model: bedrock/anthropic.claude-v2'),
      entry('e', 'model: openai/text-embedding-3-small'),
      entry('own', 'model: openai/own', 'model_info: { mode: image_generation }'),
      entry('w', 'model: openai/whisper-1'),
      entry('chat-embed', 'model: openai/embed-talk', 'model_info: { mode: chat }'),
    ]);
    expect(Object.keys(config.models)).toEqual(['chat', 'mixed', 'chat-embed']);
    expect(written).toContain('  # e is left out: embeddings are no text');
    expect(written).toMatch(/ {2}# an entry of mixed is left out: of Bedrock's models only gpt-oss/);
    expect(partOf(stdout, 'No counterpart')).toContain('model: pictures are not served (own)\n');
  });

  test('writes nothing where no model has a counterpart, and says why', async () => {
    const { code, stdout, stderr, written } = await importEntries([
      entry('a', 'model: bedrock/anthropic.claude-v2'),
      entry('b', 'model: replicate/meta/llama'),
      entry('c', 'model: some-model'),
    ]);
    expect([code, stdout, written]).toEqual([1, '', '']);
    expect(stderr).toMatch(
      /^textgate: no model of litellm\.yaml has a counterpart, and nothing is written\n/,
    );
    expect(stderr).toMatch(/Converse \(a\)\n/);
    expect(stderr).toContain('there is no tested line for replicate');
    expect(stderr).toContain('no provider stands in front of the name of the model, such as openai/ (c)');
  });
});

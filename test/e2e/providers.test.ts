import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readAnswerBody } from '../support/client-answer.ts';
import type { ClientAnswer } from '../support/client-answer.ts';
import { loadUpstream, readProvidersTable } from '../support/providers-table.ts';
import type { UpstreamInput } from '../support/providers-table.ts';
import {
  bedrock,
  bedrockResponses,
  databricks,
  snowflake,
  vertex,
} from '../support/providers/cloud-scripts.ts';
import { minimax, moonshot, qwen, zai } from '../support/providers/eastern-scripts.ts';
import { fireworks, groq, mistral, together, xai } from '../support/providers/hosted-scripts.ts';
import { llamacpp, lmstudio, ollama, sglang, vllm } from '../support/providers/local-scripts.ts';
import {
  cerebras,
  cohere,
  huggingface,
  nvidia,
  ollamaCloud,
  perplexity,
} from '../support/providers/more-hosted-scripts.ts';
import { anthropic, gemini } from '../support/providers/native-scripts.ts';
import { azure, azureDeployment, openai, openaiResponses } from '../support/providers/openai-scripts.ts';
import { asked, thought, whole } from '../support/providers/provider-script.ts';
import type { ProviderScript } from '../support/providers/provider-script.ts';
import { deepseek, openrouter } from '../support/providers/waiting-scripts.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const scripts: Readonly<Record<string, ProviderScript>> = {
  OpenAI: openai,
  'OpenAI, by Responses': openaiResponses,
  'Azure OpenAI': azure,
  'Azure OpenAI, a deployment': azureDeployment,
  Anthropic: anthropic,
  'Google Gemini': gemini,
  OpenRouter: openrouter,
  DeepSeek: deepseek,
  Groq: groq,
  Mistral: mistral,
  xAI: xai,
  Together: together,
  Fireworks: fireworks,
  'Amazon Bedrock': bedrock,
  'Amazon Bedrock, by Responses': bedrockResponses,
  'Google Vertex AI': vertex,
  Databricks: databricks,
  Snowflake: snowflake,
  Cohere: cohere,
  Perplexity: perplexity,
  Cerebras: cerebras,
  'Hugging Face': huggingface,
  'NVIDIA NIM': nvidia,
  'Ollama Cloud': ollamaCloud,
  'Moonshot AI': moonshot,
  'Z.ai': zai,
  'Alibaba Qwen': qwen,
  MiniMax: minimax,
  vLLM: vllm,
  SGLang: sglang,
  'llama.cpp': llamacpp,
  Ollama: ollama,
  'LM Studio': lmstudio,
};

const table = readProvidersTable();

/** Headers that a client's library and network add to a request; none of them may reach the provider. */
const clientHeaders = {
  'user-agent': 'OpenAI/JS 7.55.0',
  'x-stainless-lang': 'js',
  'x-request-id': 'mine',
  'x-forwarded-for': '10.1.2.3',
  'openai-organization': 'org-mine',
  'x-api-key': 'mine',
  'api-key': 'mine',
  'anthropic-beta': 'mine',
  cookie: 'session=mine',
};

interface Stage {
  readonly upstream: ScriptedUpstream;
  readonly gateway: TestGateway;
}

/** Starts a gateway with this upstream's config, but with the scripted upstream's host in the address. */
async function openProvider(config: UpstreamInput): Promise<Stage> {
  const upstream = await startUpstream();
  const url = new URL(config.url);
  url.protocol = 'http:';
  url.host = new URL(upstream.url).host;
  const gateway = await startGateway({
    upstreams: { provider: { ...config, url: url.href } },
    routes: [{ upstream: 'provider', model: asked.model }],
  });
  return { upstream, gateway };
}

type Protocol = 'chat' | 'responses';

async function ask(
  gateway: TestGateway,
  protocol: Protocol,
  stream: boolean,
): Promise<{ readonly answer: ClientAnswer; readonly text: string }> {
  const { system, user, cap } = asked;
  const turns = ['system', 'user'].map((role) => ({ role, content: role === 'system' ? system : user }));
  const shown = stream ? { stream_options: { include_usage: true } } : {};
  const response =
    protocol === 'chat'
      ? await gateway.post(
          '/v1/chat/completions',
          { model: 'small', stream, messages: turns, max_tokens: cap, ...shown },
          { headers: clientHeaders },
        )
      : await gateway.post(
          '/v1/responses',
          { model: 'small', stream, instructions: system, input: user, max_output_tokens: cap },
          { headers: clientHeaders },
        );
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const part of response.body ?? []) text += decoder.decode(part, { stream: true });
  } catch {
    // A chat stream fails by a broken connection; the bytes before that are read.
  }
  return { answer: readAnswerBody(protocol, stream && response.status === 200, text), text };
}

const forms = (['chat', 'responses'] as const).flatMap((protocol) =>
  [false, true].map((stream) => [protocol, stream ? 'streamed' : 'whole', stream] as const),
);

test('every provider of the table has a script, and every scripted provider is in the table', () => {
  expect([...table.keys()]).toEqual(Object.keys(scripts));
});

describe.each(Object.entries(scripts))(
  '%s, configured as in docs/operators/upstreams.md,',
  (name, script) => {
    let stage: Stage;
    beforeAll(async () => {
      stage = await openProvider(loadUpstream(table.get(name) ?? '{}'));
    });
    beforeEach(() => void stage.upstream.seen.splice(0));
    afterAll(async () => {
      await stage.gateway.close();
      await stage.upstream.close();
    });

    test.each(forms)('serves a client of %s with a %s answer', async (protocol, _form, stream) => {
      const { upstream, gateway } = stage;
      const contentType = stream ? 'text/event-stream; charset=utf-8' : 'application/json';
      upstream.play((response) => {
        response.writeHead(200, { 'content-type': contentType }).end(stream ? script.stream : script.body);
      });
      const { answer, text } = await ask(gateway, protocol, stream);
      const [input, cached, output, reasoning] = script.usage;
      expect(answer).toEqual({ ending: 'stop', text: whole, usage: [input, output], code: null });
      expect(text).toContain(`"cached_tokens":${cached}`);
      expect(text).toContain(`"reasoning_tokens":${reasoning}`);
      expect(text).not.toContain(thought);

      expect(upstream.seen).toHaveLength(1);
      const [{ method, path, headers, body } = { headers: {}, body: '' }] = upstream.seen;
      expect([method, path]).toEqual(['POST', script.path(stream)]);
      expect(JSON.parse(body)).toEqual(script.request(stream));
      expect(headers).toEqual({
        host: new URL(upstream.url).host,
        connection: 'keep-alive',
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
        accept: stream ? 'text/event-stream' : 'application/json',
        'accept-encoding': 'identity',
        'user-agent': 'textgate',
        ...script.headers,
      });
    });

    const faults = (script.faults ?? []).flatMap((fault) =>
      (['chat', 'responses'] as const).map((protocol) => [fault.name, protocol, fault] as const),
    );
    test.runIf(faults.length > 0).each(faults)(
      'reports %s to a client of %s',
      async (_name, protocol, fault) => {
        const { upstream, gateway } = stage;
        const { stream, status, bytes, text, code } = fault;
        const contentType = stream && status === 200 ? 'text/event-stream' : 'application/json';
        upstream.play(
          (response) => void response.writeHead(status, { 'content-type': contentType }).end(bytes),
        );
        const { answer } = await ask(gateway, protocol, stream);
        expect(answer).toEqual({ ending: 'failure', text, usage: null, code });
      },
    );
  },
);

import type { ListedModels } from '../../composition/upstreams/list-models.ts';

/** An upstream's settings, as they are written into a config file. */
export interface UpstreamLine {
  readonly url: string;
  /** A reference to an environment variable. */
  readonly apiKey?: string;
  readonly [setting: string]: unknown;
}

/** A provider by the name that its upstream gets, and its tested settings: those of the table in docs/operators/upstreams.md. */
interface KnownUpstream {
  readonly name: string;
  readonly line: UpstreamLine;
}

/** An upstream for the config, and what says that it is there. */
export interface FoundUpstream {
  readonly name: string;
  readonly line: UpstreamLine;
  /** For the operator: the option or the variable that it comes from, or its address. */
  readonly foundBy: string;
}

/** An upstream with the models that it lists, or why it lists none. */
export interface AskedUpstream extends FoundUpstream {
  readonly listed: ListedModels;
}

const maxCompletionTokens = { maxTokensField: 'max_completion_tokens' } as const;

/** Providers whose address is the same for all of their customers. */
export const providers: readonly KnownUpstream[] = [
  hosted('openai', 'https://api.openai.com/v1', 'OPENAI_API_KEY', {
    systemRole: 'developer',
    ...maxCompletionTokens,
  }),
  hosted('anthropic', 'https://api.anthropic.com/v1', 'ANTHROPIC_API_KEY', { dialects: ['anthropic'] }),
  hosted('gemini', 'https://generativelanguage.googleapis.com/v1beta', 'GEMINI_API_KEY', {
    dialects: ['gemini'],
  }),
  hosted('openrouter', 'https://openrouter.ai/api/v1', 'OPENROUTER_API_KEY'),
  hosted('deepseek', 'https://api.deepseek.com', 'DEEPSEEK_API_KEY'),
  hosted('groq', 'https://api.groq.com/openai/v1', 'GROQ_API_KEY', maxCompletionTokens),
  hosted('mistral', 'https://api.mistral.ai/v1', 'MISTRAL_API_KEY', { streamUsage: 'given' }),
  hosted('xai', 'https://api.x.ai/v1', 'XAI_API_KEY'),
  hosted('together', 'https://api.together.ai/v1', 'TOGETHER_API_KEY'),
  hosted('fireworks', 'https://api.fireworks.ai/inference/v1', 'FIREWORKS_API_KEY'),
  hosted('cohere', 'https://api.cohere.ai/compatibility/v1', 'COHERE_API_KEY', { streamUsage: 'given' }),
  hosted('perplexity', 'https://api.perplexity.ai/v1', 'PERPLEXITY_API_KEY', { dialects: ['responses'] }),
  hosted('cerebras', 'https://api.cerebras.ai/v1', 'CEREBRAS_API_KEY', maxCompletionTokens),
  hosted('huggingface', 'https://router.huggingface.co/v1', 'HF_TOKEN', { thoughtTag: 'think' }),
  hosted('nvidia', 'https://integrate.api.nvidia.com/v1', 'NVIDIA_API_KEY'),
  hosted('ollama-cloud', 'https://ollama.com/v1', 'OLLAMA_API_KEY'),
  hosted('moonshot', 'https://api.moonshot.ai/v1', 'MOONSHOT_API_KEY'),
  hosted('zai', 'https://api.z.ai/api/paas/v4', 'ZAI_API_KEY'),
  hosted('qwen', 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1', 'DASHSCOPE_API_KEY'),
  hosted('minimax', 'https://api.minimax.io/v1', 'MINIMAX_API_KEY', {
    ...maxCompletionTokens,
    thoughtTag: 'think',
  }),
];

/** OpenAI by its other protocol, which some of its models have alone. */
export const openaiByResponses = hosted('openai-responses', 'https://api.openai.com/v1', 'OPENAI_API_KEY', {
  dialects: ['responses'],
});

/** The tested settings of providers at which each customer has an address of its own, beside that address. */
export const settingsBesideAddress = {
  azure: { apiKey: referenceTo('AZURE_API_KEY'), authHeader: 'api-key', ...maxCompletionTokens },
  bedrock: {
    apiKey: referenceTo('AWS_BEARER_TOKEN_BEDROCK'),
    ...maxCompletionTokens,
    thoughtTag: 'reasoning',
  },
  databricks: { apiKey: referenceTo('DATABRICKS_API_KEY') },
  snowflake: {
    apiKey: referenceTo('SNOWFLAKE_TOKEN'),
    ...maxCompletionTokens,
    headers: { 'X-Snowflake-Authorization-Token-Type': 'PROGRAMMATIC_ACCESS_TOKEN' },
  },
  vertex: { apiKey: { command: ['gcloud', 'auth', 'print-access-token'], every: '30m' } },
} as const;

/** Servers of one's own, at the ports that they usually have. */
export const localServers: readonly KnownUpstream[] = [
  local('ollama', 11_434),
  local('vllm', 8_000),
  local('llama.cpp', 8_080),
  local('lm-studio', 1_234),
  local('sglang', 30_000),
];

function hosted(name: string, url: string, variable: string, settings: object = {}): KnownUpstream {
  return { name, line: { url, apiKey: referenceTo(variable), ...settings } };
}

function local(name: string, port: number): KnownUpstream {
  return { name, line: { url: `http://127.0.0.1:${port}/v1` } };
}

/** How a config file has the value of an environment variable. */
export function referenceTo(variable: string): string {
  return `\${${variable}}`;
}

/** The environment variable that an upstream's key is in; `null` for one without a key. */
export function variableOf({ apiKey }: Pick<UpstreamLine, 'apiKey'>): string | null {
  return apiKey === undefined ? null : apiKey.slice('${'.length, -'}'.length);
}

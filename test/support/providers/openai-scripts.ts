import {
  asked,
  chatRequest,
  chunks,
  completion,
  done,
  pieces,
  refusals,
  sse,
  whole,
} from './provider-script.ts';
import type { ProviderScript } from './provider-script.ts';

const safe = { hate: { filtered: false, severity: 'safe' } };
const usage = {
  prompt_tokens: 19,
  completion_tokens: 149,
  total_tokens: 168,
  prompt_tokens_details: { cached_tokens: 16, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 128, accepted_prediction_tokens: 0 },
};
const counts = [19, 16, 149, 128] as const;

const openaiChunks = chunks({
  head: { service_tier: 'default', system_fingerprint: null, usage: null, obfuscation: 'x7Kq' },
  choice: { logprobs: null },
});

/** The request for OpenAI's newer models, and for both paths of Azure. */
const request = chatRequest({ cap: 'max_completion_tokens' });

export const openai: ProviderScript = {
  path: () => '/v1/chat/completions',
  request: chatRequest({ role: 'developer', cap: 'max_completion_tokens' }),
  headers: { authorization: 'Bearer key of OPENAI_API_KEY' },
  body: completion({ content: whole, refusal: null, annotations: [] }, usage, { service_tier: 'default' }),
  stream: sse(
    openaiChunks.say({ role: 'assistant', content: '', refusal: null }),
    ...pieces.map((content) => openaiChunks.say({ content })),
    openaiChunks.finish({}),
    openaiChunks.usage(usage, { obfuscation: '' }),
    done,
  ),
  usage: counts,
  faults: refusals(
    'a context that is too long',
    400,
    { error: { message: 'x', type: 'invalid_request_error', code: 'context_length_exceeded' } },
    'context_length_exceeded',
  ),
};

const responsesUsage = {
  input_tokens: 19,
  input_tokens_details: { cached_tokens: 16 },
  output_tokens: 149,
  output_tokens_details: { reasoning_tokens: 128 },
  total_tokens: 168,
};
const thinking = { type: 'reasoning', id: 'rs_1', summary: [] };
const part = { type: 'output_text', text: whole, annotations: [], logprobs: [] };
const message = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [part] };
const response = { id: 'resp_1', object: 'response', error: null, incomplete_details: null };
const finished = {
  ...response,
  status: 'completed',
  output: [thinking, message],
  usage: responsesUsage,
};
const event = (type: string, fields: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

export const openaiResponses: ProviderScript = {
  path: () => '/v1/responses',
  request: (stream) => ({
    model: asked.model,
    input: [
      { type: 'message', role: 'system', content: asked.system },
      { type: 'message', role: 'user', content: asked.user },
    ],
    max_output_tokens: asked.cap,
    stream,
    store: false,
  }),
  headers: { authorization: 'Bearer key of OPENAI_API_KEY' },
  body: JSON.stringify(finished),
  stream: [
    event('response.created', { response: { ...response, status: 'in_progress', output: [] } }),
    event('response.output_item.added', { output_index: 0, item: thinking }),
    event('response.output_item.done', { output_index: 0, item: thinking }),
    event('response.output_item.added', { output_index: 1, item: { ...message, content: [] } }),
    ...pieces.map((delta) => event('response.output_text.delta', { delta, obfuscation: 'x7' })),
    event('response.output_text.done', { text: whole }),
    event('response.output_item.done', { output_index: 1, item: message }),
    event('response.completed', { response: finished }),
  ].join(''),
  usage: counts,
};

/** Azure sends its filter results for the prompt in a chunk before the first one. */
const azureChunks = chunks({ choice: { logprobs: null, content_filter_results: safe } });
const filteredPrompt = {
  id: '',
  object: '',
  created: 0,
  model: '',
  choices: [],
  prompt_filter_results: [{ prompt_index: 0, content_filter_results: safe }],
};

const azureAnswers = {
  request,
  headers: { 'api-key': 'key of AZURE_OPENAI_API_KEY' },
  body: completion({ content: whole }, usage, {}, { content_filter_results: safe }),
  stream: sse(
    filteredPrompt,
    azureChunks.say({ role: 'assistant', content: '', refusal: null }),
    ...pieces.map((content) => azureChunks.say({ content })),
    azureChunks.finish({}),
    azureChunks.usage(usage),
    done,
  ),
  usage: counts,
  faults: refusals(
    'a key that is wrong',
    401,
    { error: { code: '401', message: 'Access denied due to invalid subscription key' } },
    'upstream_auth',
  ),
};

export const azure: ProviderScript = { ...azureAnswers, path: () => '/openai/v1/chat/completions' };

export const azureDeployment: ProviderScript = {
  ...azureAnswers,
  path: () => '/openai/deployments/my-deployment/chat/completions?api-version=2025-04-01-preview',
};

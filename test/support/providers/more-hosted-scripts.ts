import { openaiResponses } from './openai-scripts.ts';
import {
  asked,
  chatRequest,
  chunks,
  completion,
  done,
  pieces,
  refusals,
  sse,
  thought,
  whole,
} from './provider-script.ts';
import type { ProviderScript } from './provider-script.ts';

const usage = { prompt_tokens: 21, completion_tokens: 14, total_tokens: 35 };
const counts = [21, 0, 14, 0] as const;

/** Cohere sends usage unasked, and may write its own finish reason. */
const cohereChunks = chunks({ head: { system_fingerprint: null } });

export const cohere: ProviderScript = {
  path: () => '/compatibility/v1/chat/completions',
  request: chatRequest({ asksUsage: false }),
  headers: { authorization: 'Bearer key of COHERE_API_KEY' },
  body: completion({ content: whole, refusal: null }, usage, {}, { finish_reason: 'COMPLETE' }),
  stream: sse(
    cohereChunks.say({ role: 'assistant', content: '' }),
    ...pieces.map((content) => cohereChunks.say({ content })),
    cohereChunks.finish({}, { usage }, 'COMPLETE'),
    done,
  ),
  usage: counts,
  faults: [
    ...refusals('a key that is wrong', 401, { id: 'x', message: 'invalid api token' }, 'upstream_auth'),
    {
      name: 'a finish reason that is no good end',
      stream: true,
      status: 200,
      bytes: sse(cohereChunks.say({ content: pieces[0] }), cohereChunks.finish({}, { usage }, 'ERROR'), done),
      text: pieces[0],
      code: 'upstream_error',
    },
  ],
};

/** Perplexity's events of a search are between those of OpenAI, and their results are items of the output. */
const searchEvent = (type: string, fields: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: 1, ...fields })}\n\n`;
const found = { type: 'search_results', queries: ['hello'], results: [{ id: 1, url: 'https://a.test' }] };
const answer = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: whole, annotations: [] }],
};
const searched = {
  id: 'resp_1',
  object: 'response',
  error: null,
  status: 'completed',
  output: [found, answer],
  usage: {
    input_tokens: 21,
    output_tokens: 14,
    total_tokens: 35,
    cost: { currency: 'USD', total_cost: 0.01 },
  },
};

export const perplexity: ProviderScript = {
  ...openaiResponses,
  headers: { authorization: 'Bearer key of PERPLEXITY_API_KEY' },
  body: JSON.stringify(searched),
  stream: [
    searchEvent('response.created', { response: { ...searched, status: 'in_progress', output: [] } }),
    searchEvent('response.reasoning.started', { thought }),
    searchEvent('response.reasoning.search_queries', { queries: ['hello'], thought }),
    searchEvent('response.reasoning.search_results', { results: found.results, thought: null }),
    searchEvent('response.reasoning.stopped', { thought: null }),
    searchEvent('response.output_item.done', { output_index: 0, item: found }),
    ...pieces.map((delta) => searchEvent('response.output_text.delta', { output_index: 1, delta })),
    searchEvent('response.output_text.done', { text: whole }),
    searchEvent('response.completed', { response: searched }),
  ].join(''),
  usage: counts,
};

const cerebrasChunks = chunks({ head: { system_fingerprint: 'fp_1' } });
const timings = { time_info: { queue_time: 0.0001, total_time: 0.02, created: 1_790_000_000 } };
const cerebrasUsage = { ...usage, prompt_tokens_details: { cached_tokens: 8 } };

export const cerebras: ProviderScript = {
  path: () => '/v1/chat/completions',
  request: chatRequest({ cap: 'max_completion_tokens' }),
  headers: { authorization: 'Bearer key of CEREBRAS_API_KEY' },
  body: completion({ content: whole, reasoning: thought }, cerebrasUsage, timings),
  stream: sse(
    cerebrasChunks.say({ role: 'assistant' }),
    cerebrasChunks.say({ reasoning: thought }),
    ...pieces.map((content) => cerebrasChunks.say({ content })),
    cerebrasChunks.finish({}, { usage: cerebrasUsage, ...timings }),
    done,
  ),
  usage: [21, 8, 14, 0],
  faults: refusals(
    'a queue that is full',
    429,
    {
      message: 'Requests per minute limit exceeded',
      type: 'too_many_requests_error',
      code: 'request_quota_exceeded',
    },
    'upstream_rate_limited',
  ),
};

/** The router passes on what its providers send: usage three times over, as Groq does, and thoughts in a tag. */
const routed = chunks({ head: { system_fingerprint: 'fp_1' }, choice: { logprobs: null } });

export const huggingface: ProviderScript = {
  path: () => '/v1/chat/completions',
  request: chatRequest(),
  headers: { authorization: 'Bearer key of HF_TOKEN' },
  body: completion({ content: `<think>\n${thought}\n</think>\n\n${whole}` }, usage, {
    usage_breakdown: null,
  }),
  stream: sse(
    routed.say({ role: 'assistant', content: '' }, { x_groq: { id: 'req_1' } }),
    ...['<think>', '\n', thought, '\n', '</think>', '\n\n', ...pieces].map((content) =>
      routed.say({ content }),
    ),
    routed.finish({}, { usage, x_groq: { id: 'req_1', usage } }),
    routed.usage(usage),
    done,
  ),
  usage: counts,
  faults: refusals(
    'a token without permission',
    403,
    { error: 'This authentication method does not have sufficient permissions to call Inference Providers' },
    'upstream_auth',
  ),
};

/** The usage so far is in every chunk. */
const nimChunks = chunks({ choice: { logprobs: null } });
const nimSoFar = (tokens: number): object => ({
  usage: { prompt_tokens: 21, completion_tokens: tokens, total_tokens: 21 + tokens },
});

export const nvidia: ProviderScript = {
  path: () => '/v1/chat/completions',
  request: chatRequest(),
  headers: { authorization: 'Bearer key of NVIDIA_API_KEY' },
  body: completion({ content: whole, reasoning_content: thought, tool_calls: [] }, usage),
  stream: sse(
    nimChunks.say({ role: 'assistant', content: null, reasoning_content: thought }, nimSoFar(6)),
    ...pieces.map((content, index) =>
      nimChunks.say({ content, reasoning_content: null }, nimSoFar(7 + index)),
    ),
    nimChunks.finish({ content: '' }, nimSoFar(14)),
    nimChunks.usage(usage),
    done,
  ),
  usage: counts,
  faults: refusals(
    'a problem document',
    402,
    { status: 402, title: 'Payment Required', detail: 'Cloud credits expired. Please contact NVIDIA.' },
    'upstream_auth',
  ),
};

const cloudChunks = chunks({ head: { system_fingerprint: 'fp_ollama' } });

export const ollamaCloud: ProviderScript = {
  path: () => '/v1/chat/completions',
  request: chatRequest(),
  headers: { authorization: 'Bearer key of OLLAMA_API_KEY' },
  body: completion({ content: whole, reasoning: thought }, usage, { system_fingerprint: 'fp_ollama' }),
  stream: sse(
    cloudChunks.say({ role: 'assistant', content: '', reasoning: thought }),
    ...pieces.map((content) => cloudChunks.say({ role: 'assistant', content })),
    cloudChunks.finish({ role: 'assistant', content: '' }),
    cloudChunks.usage(usage),
    done,
  ),
  usage: counts,
  faults: refusals(
    'a model that it does not have',
    404,
    {
      error: {
        message: `model '${asked.model}' not found`,
        type: 'not_found_error',
        param: null,
        code: null,
      },
    },
    'model_not_found',
  ),
};

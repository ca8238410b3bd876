import {
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

/** The common part of self-hosted servers: no API key, and OpenAI's names. */
const local = { path: () => '/v1/chat/completions', request: chatRequest(), headers: {} };
const usage = { prompt_tokens: 21, completion_tokens: 14, total_tokens: 35 };
const counts = [21, 0, 14, 0] as const;

/** Every chunk has every field of the schema, most of them null, and the usage so far. */
const vllmChunks = chunks({ head: { service_tier: null }, choice: { logprobs: null, token_ids: null } });
const blank = { content: null, function_call: null, refusal: null, role: null, tool_calls: null };
const soFar = (tokens: number): object => ({
  usage: { prompt_tokens: 21, completion_tokens: tokens, total_tokens: 21 + tokens },
});

export const vllm: ProviderScript = {
  ...local,
  body: completion(
    { content: whole, reasoning: thought, tool_calls: [] },
    { ...usage, prompt_tokens_details: null },
  ),
  stream: sse(
    vllmChunks.say({ ...blank, role: 'assistant', content: '' }, soFar(0)),
    vllmChunks.say({ ...blank, reasoning: thought }, soFar(6)),
    ...pieces.map((content, index) => vllmChunks.say({ ...blank, content }, soFar(7 + index))),
    vllmChunks.finish({ ...blank, content: '' }, soFar(14)),
    vllmChunks.usage(usage),
    done,
  ),
  usage: counts,
  faults: [
    ...refusals(
      'a context that is too long',
      400,
      {
        error: {
          message: 'The decoder prompt (length 9) is longer than the maximum model length of 8.',
          code: 400,
        },
      },
      'context_length_exceeded',
    ),
    {
      name: 'an error before [DONE]',
      stream: true,
      status: 200,
      bytes: sse(
        vllmChunks.say({ ...blank, content: pieces[0] }),
        { error: { message: 'EngineCore died', type: 'InternalServerError', param: null, code: 500 } },
        done,
      ),
      text: pieces[0],
      code: 'upstream_error',
    },
  ],
};

const sglangChunks = chunks({ head: { usage: null }, choice: { logprobs: null, matched_stop: null } });
const unsaid = { role: null, content: null, reasoning_content: null, tool_calls: null };
const sglangUsage = { ...usage, prompt_tokens_details: null, reasoning_tokens: 6 };

export const sglang: ProviderScript = {
  ...local,
  body: completion(
    { content: whole, reasoning_content: thought, tool_calls: null },
    sglangUsage,
    { metadata: { weight_version: 'default' } },
    { logprobs: null, matched_stop: 2 },
  ),
  stream: sse(
    sglangChunks.say({ ...unsaid, role: 'assistant', content: '' }),
    sglangChunks.say({ ...unsaid, reasoning_content: thought }, { created: 1_790_000_001 }),
    ...pieces.map((content) => sglangChunks.say({ ...unsaid, content }, { created: 1_790_000_002 })),
    sglangChunks.finish(unsaid),
    sglangChunks.usage(sglangUsage),
    done,
  ),
  usage: [21, 0, 14, 6],
  faults: refusals(
    'an error without an envelope',
    400,
    {
      object: 'error',
      message: "The input (9 tokens) is longer than the model's context length (8 tokens).",
      code: 400,
    },
    'context_length_exceeded',
  ),
};

const llamaChunks = chunks({ head: { system_fingerprint: 'b10499' } });
const timings = { cache_n: 18, prompt_n: 3, predicted_n: 14, predicted_per_second: 138.7 };
const llamaUsage = { ...usage, prompt_tokens_details: { cached_tokens: 18 } };

export const llamacpp: ProviderScript = {
  ...local,
  body: completion({ content: whole, reasoning_content: thought }, llamaUsage, { timings }),
  stream: sse(
    llamaChunks.say({ role: 'assistant', content: null }),
    llamaChunks.say({ reasoning_content: thought }),
    ...pieces.map((content) => llamaChunks.say({ content })),
    llamaChunks.finish({}),
    llamaChunks.usage(llamaUsage, { timings }),
    'data: [DONE]', // some builds leave out the blank line
  ),
  usage: [21, 18, 14, 0],
  faults: [
    {
      name: 'an `error:` field',
      stream: true,
      status: 200,
      bytes: sse(llamaChunks.say({ content: pieces[0] }), 'error: {"code":500,"message":"x"}\n\n', done),
      text: pieces[0],
      code: 'upstream_error',
    },
    ...refusals(
      'a context that is too long',
      400,
      { error: { code: 400, message: 'x', type: 'exceed_context_size_error', n_ctx: 8 } },
      'context_length_exceeded',
    ),
  ],
};

const ollamaChunks = chunks({ head: { system_fingerprint: 'fp_ollama' } });

export const ollama: ProviderScript = {
  ...local,
  body: completion({ content: whole, reasoning: thought }, usage, { system_fingerprint: 'fp_ollama' }),
  stream: sse(
    ollamaChunks.say({ role: 'assistant', content: '', reasoning: thought }),
    ...pieces.map((content) => ollamaChunks.say({ role: 'assistant', content })),
    ollamaChunks.finish({ role: 'assistant', content: '' }),
    ollamaChunks.usage(usage),
    done,
  ),
  usage: counts,
  faults: refusals(
    'a context that is too long',
    400,
    { error: { message: 'prompt too long; exceeded max context length by 9 tokens', code: null } },
    'context_length_exceeded',
  ),
};

const lmChunks = chunks({ choice: { logprobs: null } });

export const lmstudio: ProviderScript = {
  ...local,
  body: completion({ content: whole, tool_calls: [] }, usage, { stats: {}, system_fingerprint: 'm' }),
  stream: sse(
    ...pieces.map((content) => lmChunks.say({ role: 'assistant', content })),
    lmChunks.finish({}),
    lmChunks.usage(usage),
    done,
  ),
  usage: counts,
  faults: [
    {
      name: 'a context that is too long, under a 200',
      stream: true,
      status: 200,
      bytes: `event: error\ndata: ${JSON.stringify({
        error: { message: 'Trying to keep the first 9 tokens, but the context length is only 8 tokens' },
        message: 'x',
      })}\n\n`,
      text: '',
      code: 'context_length_exceeded',
    },
  ],
};

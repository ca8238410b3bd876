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

const usage = { prompt_tokens: 21, completion_tokens: 14, total_tokens: 35 };
const counts = [21, 0, 14, 0] as const;
const thinkingFirst = { role: 'assistant', content: null, reasoning_content: thought };

const groqChunks = chunks({ head: { system_fingerprint: 'fp_1' }, choice: { logprobs: null } });
const groqUsage = { queue_time: 0.19, ...usage, total_time: 0.02 };

export const groq: ProviderScript = {
  path: () => '/openai/v1/chat/completions',
  request: chatRequest({ cap: 'max_completion_tokens' }),
  headers: { authorization: 'Bearer key of GROQ_API_KEY' },
  body: completion({ content: whole, reasoning: thought }, groqUsage, { x_groq: { id: 'req_1', seed: 7 } }),
  stream: sse(
    groqChunks.say({ role: 'assistant', content: '' }, { x_groq: { id: 'req_1', seed: 7 } }),
    groqChunks.say({ reasoning: thought, channel: 'analysis' }),
    ...pieces.map((content) => groqChunks.say({ content })),
    groqChunks.finish({}, { x_groq: { id: 'req_1', usage: groqUsage } }),
    done,
  ),
  usage: counts,
  faults: [
    ...refusals(
      'a context that is too long',
      400,
      { error: { message: 'Please reduce the length of the messages.', code: 'context_length_exceeded' } },
      'context_length_exceeded',
    ),
  ],
};

const mistralChunks = chunks({ head: { p: 'abcdefg' } });
const thinkingPart = { type: 'thinking', thinking: [{ type: 'text', text: thought }], closed: true };

export const mistral: ProviderScript = {
  path: () => '/v1/chat/completions',
  request: chatRequest({ asksUsage: false }),
  headers: { authorization: 'Bearer key of MISTRAL_API_KEY' },
  body: completion({ tool_calls: null, content: [thinkingPart, { type: 'text', text: whole }] }, usage),
  stream: sse(
    mistralChunks.say({ role: 'assistant', content: '' }),
    mistralChunks.say({ content: [thinkingPart] }),
    mistralChunks.say({ content: [thinkingPart, { type: 'text', text: pieces[0] }] }),
    mistralChunks.say({ content: pieces[1] }),
    mistralChunks.finish({ content: pieces[2] }, { usage }),
    done,
  ),
  usage: counts,
};

/** Before the end the finish reason is absent, not null. Thoughts are counted in the total only. */
const grokChunks = chunks({ head: { system_fingerprint: 'fp_1' }, choice: { finish_reason: undefined } });
const grokUsage = {
  prompt_tokens: 213,
  completion_tokens: 2,
  total_tokens: 413,
  prompt_tokens_details: { text_tokens: 213, cached_tokens: 192 },
  completion_tokens_details: { reasoning_tokens: 198 },
  num_sources_used: 0,
};

export const xai: ProviderScript = {
  path: () => '/v1/chat/completions',
  request: chatRequest(),
  headers: { authorization: 'Bearer key of XAI_API_KEY' },
  body: completion({ content: whole, reasoning_content: thought, refusal: null }, grokUsage),
  stream: sse(
    grokChunks.say({ role: 'assistant', reasoning_content: thought }),
    ...pieces.map((content) => grokChunks.say({ content })),
    grokChunks.finish({}),
    grokChunks.usage(grokUsage),
    done,
  ),
  usage: [213, 192, 200, 198],
  faults: refusals(
    'a context that is too long',
    400,
    {
      code: 'invalid-argument',
      error: "This model's maximum prompt length is 8 but the request contains 9 tokens.",
    },
    'context_length_exceeded',
  ),
};

/** Contains the text twice, and the number of its token in every chunk. */
const togetherSay = (content: string, finish: string | null = null, extra: object = {}): object => ({
  ...chunks().say({ token_id: 16, role: 'assistant', content, tool_calls: [] }, { usage: null, ...extra }),
  choices: [
    {
      index: 0,
      text: content,
      seed: null,
      delta: { token_id: 16, role: 'assistant', content },
      finish_reason: finish,
    },
  ],
});
const togetherUsage = { ...usage, cached_tokens: 8 };

export const together: ProviderScript = {
  path: () => '/v1/chat/completions',
  request: chatRequest(),
  headers: { authorization: 'Bearer key of TOGETHER_API_KEY' },
  body: completion(
    { content: whole, tool_calls: [] },
    togetherUsage,
    { prompt: [] },
    { seed: 7, finish_reason: 'eos' },
  ),
  stream: sse(
    ...pieces.map((content) => togetherSay(content)),
    togetherSay('', 'eos', { usage: togetherUsage }),
    done,
  ),
  usage: [21, 8, 14, 0],
};

const fireworksChunks = chunks();
const fireworksUsage = { ...usage, prompt_tokens_details: { cached_tokens: 8 } };

export const fireworks: ProviderScript = {
  path: () => '/inference/v1/chat/completions',
  request: chatRequest(),
  headers: { authorization: 'Bearer key of FIREWORKS_API_KEY' },
  body: completion({ content: whole, reasoning_content: thought }, fireworksUsage),
  stream: sse(
    fireworksChunks.say(thinkingFirst),
    ...pieces.map((content) => fireworksChunks.say({ content })),
    fireworksChunks.finish({}, { usage: fireworksUsage }),
    done,
  ),
  usage: [21, 8, 14, 0],
  faults: refusals(
    'a context that is too long',
    400,
    { error: { message: 'The prompt is too long: 9, model maximum context length: 8', code: null } },
    'context_length_exceeded',
  ),
};

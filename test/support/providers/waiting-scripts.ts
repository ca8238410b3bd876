import { chatRequest, chunks, completion, done, pieces, sse, thought, whole } from './provider-script.ts';
import type { ProviderScript } from './provider-script.ts';

/** Providers that send keep-alive data while a request is queued. */
const usage = { prompt_tokens: 21, completion_tokens: 14, total_tokens: 35 };

const routerChunks = chunks({ head: { provider: 'Some Provider' }, choice: { native_finish_reason: null } });
const waiting = ': OPENROUTER PROCESSING\n\n';
const limited = { code: 429, message: 'Provider returned error', metadata: { raw: 'slow down' } };
const routerUsage = {
  ...usage,
  cost: 0.0000046,
  prompt_tokens_details: { cached_tokens: 8 },
  completion_tokens_details: { reasoning_tokens: 6 },
};

export const openrouter: ProviderScript = {
  path: () => '/api/v1/chat/completions',
  request: chatRequest(),
  headers: { authorization: 'Bearer key of OPENROUTER_API_KEY' },
  body: `\n         \n${completion({ content: whole, reasoning: thought, refusal: null }, routerUsage)}`,
  stream: sse(
    waiting,
    waiting,
    routerChunks.say({ role: 'assistant', content: '', reasoning: thought }),
    ...pieces.map((content) => routerChunks.say({ role: 'assistant', content })),
    routerChunks.finish({ role: 'assistant', content: '' }),
    routerChunks.say({ role: 'assistant', content: '' }, { usage: routerUsage }),
    done,
  ),
  usage: [21, 8, 14, 6],
  faults: [
    {
      name: 'an error chunk',
      stream: true,
      status: 200,
      bytes: sse(
        waiting,
        routerChunks.say({ role: 'assistant', content: pieces[0] }),
        routerChunks.finish({ content: '' }, { error: limited }, 'error'),
        done,
      ),
      text: pieces[0],
      code: 'upstream_rate_limited',
    },
    {
      name: 'an error under a 200',
      stream: false,
      status: 200,
      bytes: `\n\n${JSON.stringify({ error: limited, user_id: 'u' })}`,
      text: '',
      code: 'upstream_rate_limited',
    },
    {
      name: 'an error of the choice',
      stream: false,
      status: 200,
      bytes: completion({ content: pieces[0] }, usage, {}, { finish_reason: 'error', error: limited }),
      text: '',
      code: 'upstream_rate_limited',
    },
  ],
};

const deepseekChunks = chunks({ choice: { logprobs: null } });
const deepseekUsage = {
  ...usage,
  prompt_cache_hit_tokens: 16,
  prompt_cache_miss_tokens: 5,
  completion_tokens_details: { reasoning_tokens: 6 },
};

export const deepseek: ProviderScript = {
  path: () => '/chat/completions',
  request: chatRequest(),
  headers: { authorization: 'Bearer key of DEEPSEEK_API_KEY' },
  body: `\n\n\n${completion({ content: whole, reasoning_content: thought }, deepseekUsage)}`,
  stream: sse(
    ': keep-alive\n\n',
    deepseekChunks.say({ role: 'assistant', content: null, reasoning_content: '' }),
    deepseekChunks.say({ content: null, reasoning_content: thought }),
    ': keep-alive\n\n',
    ...pieces.map((content) => deepseekChunks.say({ content, reasoning_content: null })),
    deepseekChunks.finish({ content: '', reasoning_content: null }, { usage: deepseekUsage }),
    done,
  ),
  usage: [21, 16, 14, 6],
  faults: [
    {
      name: 'an answer that it had no resources to finish',
      stream: true,
      status: 200,
      bytes: sse(
        deepseekChunks.say({ content: pieces[0] }),
        deepseekChunks.finish({ content: '' }, {}, 'insufficient_system_resource'),
        done,
      ),
      text: pieces[0],
      code: 'upstream_error',
    },
  ],
};

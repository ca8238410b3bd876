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
const thinkingFirst = { role: 'assistant', content: null, reasoning_content: thought };

/** Usage is in the choice of the last chunk, and nowhere else. */
const moonshotChunks = chunks({ head: { system_fingerprint: 'fpv0_1' } });
const moonshotUsage = { ...usage, cached_tokens: 8 };

export const moonshot: ProviderScript = {
  path: () => '/v1/chat/completions',
  request: chatRequest(),
  headers: { authorization: 'Bearer key of MOONSHOT_API_KEY' },
  body: completion({ content: whole, reasoning_content: thought }, moonshotUsage),
  stream: sse(
    moonshotChunks.say({ role: 'assistant', content: '' }),
    moonshotChunks.say({ reasoning_content: thought }),
    ...pieces.map((content) => moonshotChunks.say({ content })),
    {
      ...moonshotChunks.say({}),
      choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage: moonshotUsage }],
    },
    done,
  ),
  usage: [21, 8, 14, 0],
  faults: refusals(
    'a text that is refused',
    400,
    {
      error: {
        message: 'The request was rejected because it was considered high risk',
        type: 'content_filter',
      },
    },
    'content_filter',
  ),
};

/** Before the end the finish reason is absent, and every chunk has the role. */
const zaiChunks = chunks({ choice: { finish_reason: undefined } });
const zaiUsage = {
  ...usage,
  prompt_tokens_details: { cached_tokens: 8 },
  completion_tokens_details: { reasoning_tokens: 6 },
};
const zaiStart = [
  zaiChunks.say({ role: 'assistant', reasoning_content: thought }),
  zaiChunks.say({ role: 'assistant', content: pieces[0] }),
] as const;

export const zai: ProviderScript = {
  path: () => '/api/paas/v4/chat/completions',
  request: chatRequest(),
  headers: { authorization: 'Bearer key of ZAI_API_KEY' },
  body: completion({ content: whole, reasoning_content: thought }, zaiUsage, { request_id: '2026' }),
  stream: sse(
    ...zaiStart,
    ...pieces.slice(1).map((content) => zaiChunks.say({ role: 'assistant', content })),
    zaiChunks.finish({ role: 'assistant', content: '' }, { usage: zaiUsage }),
    done,
  ),
  usage: [21, 8, 14, 6],
  faults: [
    {
      name: 'a connection that broke behind it',
      stream: true,
      status: 200,
      bytes: sse(...zaiStart, zaiChunks.finish({ content: '' }, {}, 'network_error'), done),
      text: pieces[0],
      code: 'upstream_error',
    },
    ...refusals(
      'a text that is refused',
      400,
      {
        contentFilter: [{ level: 1, role: 'user' }],
        error: {
          code: '1301',
          message: 'System detected potentially unsafe or sensitive content in input or generation.',
        },
      },
      'content_filter',
    ),
  ],
};

const qwenChunks = chunks({ choice: { logprobs: null }, head: { system_fingerprint: null } });
const qwenUsage = {
  ...usage,
  prompt_tokens_details: { cached_tokens: 8 },
  completion_tokens_details: { reasoning_tokens: 6, text_tokens: 8 },
};

export const qwen: ProviderScript = {
  path: () => '/compatible-mode/v1/chat/completions',
  request: chatRequest(),
  headers: { authorization: 'Bearer key of DASHSCOPE_API_KEY' },
  body: completion({ content: whole, reasoning_content: thought }, qwenUsage),
  stream: sse(
    qwenChunks.say(thinkingFirst),
    ...pieces.map((content) => qwenChunks.say({ content, reasoning_content: null })),
    qwenChunks.finish({ content: '' }),
    qwenChunks.usage(qwenUsage),
    done,
  ),
  usage: [21, 8, 14, 6],
  faults: [
    ...refusals(
      'a text that is refused',
      400,
      {
        error: {
          code: 'data_inspection_failed',
          message: 'Input data may contain inappropriate content.',
          type: 'data_inspection_failed',
        },
      },
      'content_filter',
    ),
    ...refusals(
      'an account that is not paid',
      400,
      {
        error: {
          code: 'Arrearage',
          message: 'Access denied, please make sure your account is in good standing.',
          type: 'Arrearage',
        },
      },
      'upstream_auth',
    ),
  ],
};

/** Codes of its own under a good status, and at the end the whole text once more. */
const minimaxChunks = chunks({ head: { base_resp: { status_code: 0, status_msg: '' } } });
const minimaxSaid = `<think>\n${thought}\n</think>\n\n${whole}`;
const refused = (number: number, text: string): string =>
  JSON.stringify({ id: 'c-1', choices: null, base_resp: { status_code: number, status_msg: text } });

export const minimax: ProviderScript = {
  path: () => '/v1/chat/completions',
  request: chatRequest({ cap: 'max_completion_tokens' }),
  headers: { authorization: 'Bearer key of MINIMAX_API_KEY' },
  body: completion({ content: minimaxSaid }, usage, { base_resp: { status_code: 0, status_msg: '' } }),
  stream: sse(
    minimaxChunks.say({ role: 'assistant', content: `<think>\n${thought}` }),
    minimaxChunks.say({ content: '\n</think>\n\n' }),
    ...pieces.map((content) => minimaxChunks.say({ content })),
    {
      ...minimaxChunks.finish({}),
      object: 'chat.completion',
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: minimaxSaid } }],
      usage,
    },
    done,
  ),
  usage: [21, 0, 14, 0],
  faults: [
    ...(
      [
        ['a limit under a 200', 1002, 'rate limit exceeded(RPM)', 'upstream_rate_limited'],
        ['an empty balance under a 200', 1008, 'insufficient balance', 'upstream_auth'],
        ['a refused text under a 200', 1027, 'output new_sensitive', 'content_filter'],
        ['a fault of its own under a 200', 1013, 'unknown error', 'upstream_error'],
      ] as const
    ).map(([name, number, text, code]) => ({
      name,
      stream: false,
      status: 200,
      bytes: refused(number, text),
      text: '',
      code,
    })),
    {
      name: 'a limit inside a stream',
      stream: true,
      status: 200,
      bytes: sse(minimaxChunks.say({ content: pieces[0] }), `data: ${refused(1002, 'rate limit')}\n\n`, done),
      text: pieces[0],
      code: 'upstream_rate_limited',
    },
  ],
};

import { openaiResponses } from './openai-scripts.ts';
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

/** The models that clouds offer under their own accounts. */
const usage = { prompt_tokens: 21, completion_tokens: 14, total_tokens: 35 };

/** gpt-oss begins its text with its thoughts, in a tag, which may be cut anywhere. The first chunk has no finish reason. */
const bedrockChunks = chunks({ head: { service_tier: 'default', system_fingerprint: '' } });

export const bedrock: ProviderScript = {
  path: () => '/openai/v1/chat/completions',
  request: chatRequest({ cap: 'max_completion_tokens' }),
  headers: { authorization: 'Bearer key of AWS_BEARER_TOKEN_BEDROCK' },
  body: completion({ content: `<reasoning>${thought}</reasoning>${whole}`, refusal: null }, usage),
  stream: sse(
    { ...bedrockChunks.say({}), choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] },
    ...['<reas', `oning>${thought.slice(0, 5)}`, `${thought.slice(5)}</`, 'reasoning>'].map((content) =>
      bedrockChunks.say({ content }),
    ),
    ...pieces.map((content) => bedrockChunks.say({ content })),
    bedrockChunks.finish({}),
    bedrockChunks.usage(usage),
    done,
  ),
  usage: [21, 0, 14, 0],
  faults: refusals('a key that has ended', 403, { Message: 'Bearer Token has expired' }, 'upstream_auth'),
};

export const bedrockResponses: ProviderScript = {
  ...openaiResponses,
  path: () => '/openai/v1/responses',
  headers: { authorization: 'Bearer key of AWS_BEARER_TOKEN_BEDROCK' },
};

/** Every chunk has the role, and thoughts are counted in the total only. */
const vertexChunks = chunks({ head: { system_fingerprint: '' }, choice: { logprobs: null } });
const vertexUsage = {
  prompt_tokens: 21,
  completion_tokens: 14,
  total_tokens: 101,
  completion_tokens_details: { reasoning_tokens: 66 },
  extra_properties: { google: { traffic_type: 'ON_DEMAND' } },
};
const vertexPath = '/v1/projects/my-project/locations/global/endpoints/openapi/chat/completions';

export const vertex: ProviderScript = {
  path: () => vertexPath,
  request: chatRequest(),
  headers: { authorization: 'Bearer key of gcloud auth print-access-token' },
  body: completion({ content: whole }, vertexUsage, {}, { logprobs: null }),
  stream: sse(
    ...pieces.map((content) => vertexChunks.say({ role: 'assistant', content })),
    vertexChunks.finish({ role: 'assistant', content: '' }, { usage: vertexUsage }),
    done,
  ),
  usage: [21, 0, 80, 66],
  faults: [
    ...refusals(
      'a token that has ended, as a list',
      401,
      [{ error: { code: 401, message: 'Request had invalid credentials.', status: 'UNAUTHENTICATED' } }],
      'upstream_auth',
    ),
  ],
};

/** Thoughts are parts of the content, and the first usage has no output. */
const databricksChunks = chunks();
const summary = (text: string): object => ({
  content: [{ type: 'reasoning', summary: [{ type: 'summary_text', text, signature: '' }] }],
});
const databricksUsage = { ...usage, cache_read_input_tokens: 8, cache_creation_input_tokens: 0 };
const firstUsage = { ...databricksUsage, completion_tokens: null, total_tokens: null };

export const databricks: ProviderScript = {
  path: () => '/serving-endpoints/chat/completions',
  request: chatRequest(),
  headers: { authorization: 'Bearer key of DATABRICKS_TOKEN' },
  body: completion(
    {
      content: [
        { type: 'reasoning', summary: [{ type: 'summary_text', text: thought, signature: 'EqoB' }] },
        { type: 'text', text: whole },
      ],
    },
    databricksUsage,
  ),
  stream: sse(
    databricksChunks.say({ role: 'assistant', ...summary(thought) }, { usage: firstUsage }),
    databricksChunks.say({ content: [{ type: 'text', text: pieces[0] }] }, { usage: firstUsage }),
    ...pieces.slice(1).map((content) => databricksChunks.say({ content }, { usage: firstUsage })),
    databricksChunks.finish({ role: 'assistant', content: '' }, { usage: databricksUsage }),
    done,
  ),
  usage: [21, 8, 14, 0],
  faults: refusals(
    'a model without an endpoint',
    404,
    { error_code: 'RESOURCE_DOES_NOT_EXIST', message: 'The given endpoint does not exist, please retry.' },
    'upstream_error',
  ),
};

const snowflakeChunks = chunks({ head: { object: 'chat.completion.chunk' } });

export const snowflake: ProviderScript = {
  path: () => '/api/v2/cortex/v1/chat/completions',
  request: chatRequest({ cap: 'max_completion_tokens' }),
  headers: {
    authorization: 'Bearer key of SNOWFLAKE_TOKEN',
    'x-snowflake-authorization-token-type': 'PROGRAMMATIC_ACCESS_TOKEN',
  },
  body: completion({ content: whole, content_list: [{ type: 'text', text: whole }] }, usage),
  stream: sse(
    ...pieces.map((content) =>
      snowflakeChunks.say({ role: 'assistant', content, content_list: [{ type: 'text', text: content }] }),
    ),
    snowflakeChunks.finish({}),
    snowflakeChunks.usage(usage),
    done,
  ),
  usage: [21, 0, 14, 0],
  faults: refusals(
    'a key that is wrong',
    401,
    { code: '390303', message: 'Invalid OAuth access token.', request_id: 'r' },
    'upstream_auth',
  ),
};

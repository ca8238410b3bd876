import { errorCodes } from '../../src/shared/errors.ts';
import { schemaRef } from './contract-schemas.ts';
import type { JsonSchema } from './contract-schemas.ts';

export const text: JsonSchema = { type: 'string' };
export const count: JsonSchema = { type: 'integer', minimum: 0 };
export const flag: JsonSchema = { type: 'boolean' };

/** An object that has all of these fields, and no others. */
export function closed(properties: Readonly<Record<string, JsonSchema>>, optional: readonly string[] = []) {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, required, additionalProperties: false };
}

export function nullable(schema: JsonSchema): JsonSchema {
  return { anyOf: [schema, { type: 'null' }] };
}

const always = (value: unknown): JsonSchema => ({ const: value });
const listOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items });
const nothing: JsonSchema = { type: 'array', maxItems: 0 };

const finishReason: JsonSchema = { enum: ['stop', 'length', 'content_filter'] };

const cost: JsonSchema = { type: 'number', minimum: 0, description: 'The charge in USD, with `usageCost`.' };

const chatUsage = closed(
  {
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    prompt_tokens_details: closed({
      cached_tokens: count,
      cache_write_tokens: count,
      audio_tokens: always(0),
    }),
    completion_tokens_details: closed({
      reasoning_tokens: count,
      audio_tokens: always(0),
      accepted_prediction_tokens: always(0),
      rejected_prediction_tokens: always(0),
    }),
    cost,
  },
  ['cost'],
);

const outputText = closed({
  type: always('output_text'),
  text,
  annotations: nothing,
  logprobs: nothing,
});

/** The schemas of what clients get: answers, chunks of streams, models, errors. */
export const answerSchemas: Readonly<Record<string, JsonSchema>> = {
  ChatUsage: chatUsage,
  ChatCompletion: closed(
    {
      id: text,
      object: always('chat.completion'),
      created: count,
      model: text,
      choices: {
        type: 'array',
        minItems: 1,
        maxItems: 1,
        items: closed({
          index: always(0),
          message: closed({
            role: always('assistant'),
            content: text,
            refusal: always(null),
            annotations: nothing,
          }),
          logprobs: always(null),
          finish_reason: finishReason,
        }),
      },
      usage: schemaRef('ChatUsage'),
      system_fingerprint: always('fp_textgate'),
    },
    ['usage'],
  ),
  ChatCompletionChunk: {
    description: 'One `data:` frame of a stream. The last one is `[DONE]`, unless the answer failed.',
    ...closed(
      {
        id: text,
        object: always('chat.completion.chunk'),
        created: count,
        model: text,
        choices: {
          type: 'array',
          maxItems: 1,
          items: closed({
            index: always(0),
            delta: closed({ role: always('assistant'), content: text, refusal: always(null) }, [
              'role',
              'content',
              'refusal',
            ]),
            logprobs: always(null),
            finish_reason: nullable(finishReason),
          }),
        },
        usage: schemaRef('ChatUsage'),
        system_fingerprint: always('fp_textgate'),
      },
      ['usage', 'system_fingerprint'],
    ),
  },
  ResponseUsage: closed(
    {
      input_tokens: count,
      input_tokens_details: closed({ cached_tokens: count, cache_write_tokens: count }),
      output_tokens: count,
      output_tokens_details: closed({ reasoning_tokens: count }),
      total_tokens: count,
      cost,
    },
    ['cost'],
  ),
  Response: closed(
    {
      id: text,
      object: always('response'),
      access_programs: always(null),
      created_at: count,
      completed_at: nullable(count),
      status: { enum: ['in_progress', 'completed', 'incomplete', 'failed'] },
      background: always(false),
      error: nullable(closed({ code: text, message: text })),
      incomplete_details: nullable(closed({ reason: { enum: ['max_output_tokens', 'content_filter'] } })),
      instructions: nullable(text),
      max_output_tokens: nullable(count),
      max_tool_calls: always(null),
      model: text,
      output: listOf(
        closed({
          id: text,
          type: always('message'),
          status: { enum: ['in_progress', 'completed', 'incomplete'] },
          role: always('assistant'),
          content: listOf(outputText),
        }),
      ),
      parallel_tool_calls: always(true),
      previous_response_id: always(null),
      prompt_cache_key: nullable(text),
      reasoning: closed({ effort: always(null), summary: always(null) }),
      safety_identifier: nullable(text),
      service_tier: always('default'),
      store: always(false),
      temperature: always(1),
      text: closed({ format: closed({ type: always('text') }) }),
      tool_choice: always('auto'),
      tools: nothing,
      top_logprobs: always(0),
      top_p: always(1),
      presence_penalty: always(0),
      frequency_penalty: always(0),
      truncation: always('disabled'),
      usage: nullable(schemaRef('ResponseUsage')),
      user: text,
      metadata: { type: 'object', additionalProperties: text },
    },
    ['user'],
  ),
  ResponseEvent: {
    description:
      'One event of a stream. Sequence numbers run from 0; the last event is `response.completed`, `response.incomplete` or `response.failed`.',
    type: 'object',
    properties: {
      type: {
        enum: [
          'response.created',
          'response.in_progress',
          'response.output_item.added',
          'response.content_part.added',
          'response.output_text.delta',
          'response.output_text.done',
          'response.content_part.done',
          'response.output_item.done',
          'response.completed',
          'response.incomplete',
          'response.failed',
          'error',
        ],
      },
      sequence_number: count,
      delta: text,
      text,
      response: schemaRef('Response'),
    },
    required: ['type', 'sequence_number'],
  },
  Model: closed({ id: text, object: always('model'), created: count, owned_by: always('textgate') }),
  ModelList: closed({ object: always('list'), data: listOf(schemaRef('Model')) }),
  Error: closed({ error: schemaRef('ErrorDetail') }),
  ErrorDetail: closed(
    {
      message: text,
      type: text,
      param: nullable(text),
      code: { enum: errorCodes },
      budget: closed({ source: { enum: ['key', 'group'] }, amount: text, refills_at: text }),
      limit: closed(
        {
          source: { enum: ['key', 'group', 'upstream'] },
          kind: { enum: ['concurrency', 'rate', 'tokens', 'queue'] },
          limit: nullable(count),
          in_flight: count,
          waiting: count,
          retry_after_ms: count,
        },
        ['in_flight', 'waiting'],
      ),
      upstream: closed({ status: nullable(count), code: nullable(text), message: nullable(text) }),
    },
    ['limit', 'budget', 'upstream'],
  ),
};

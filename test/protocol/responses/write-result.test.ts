import { describe, expect, test } from 'vitest';
import { createResponsesResultWriter } from '../../../src/protocol/responses/write-answer.ts';
import type { FinishReason } from '../../../src/protocol/text.ts';
import { refuse } from '../../../src/shared/errors.ts';
import { requiredResponseKeys } from '../../support/required-response-keys.ts';
import { allExtras as extras, detailedUsage as usage, identity } from '../../support/answers.ts';

function write(reason: FinishReason, known: typeof usage | null = usage): Record<string, unknown> {
  const writer = createResponsesResultWriter(identity, extras);
  const early = writer.delta('a "b"\n') + writer.delta('😀');
  expect(early).toBe('');
  const finish = { kind: 'finished', reason, rawReason: reason, usage: known } as const;
  return JSON.parse(writer.finish(finish, 1_800_000_007, null)) as Record<string, unknown>;
}

describe('a response', () => {
  test.each<[FinishReason, string, unknown]>([
    ['stop', 'completed', null],
    ['length', 'incomplete', { reason: 'max_output_tokens' }],
    ['content_filter', 'incomplete', { reason: 'content_filter' }],
  ])('with finish reason %s is %s', (reason, status, details) => {
    expect(write(reason)).toMatchObject({
      id: 'resp_0123456789abcdef',
      object: 'response',
      created_at: 1_800_000_000,
      completed_at: 1_800_000_007,
      status,
      incomplete_details: details,
      error: null,
      model: 'a/"b"',
      output: [
        {
          id: 'msg_0123456789abcdef',
          type: 'message',
          status,
          role: 'assistant',
          content: [{ type: 'output_text', text: 'a "b"\n😀', annotations: [], logprobs: [] }],
        },
      ],
    });
  });

  test('has every key that a client’s schema may require, and repeats its request', () => {
    const response = write('stop');
    expect(Object.keys(response)).toEqual(expect.arrayContaining([...requiredResponseKeys]));
    expect(response).toMatchObject({ instructions: 'be brief', max_output_tokens: 9, store: false });
  });

  test('says what a plain text request leaves to the defaults', () => {
    expect(write('stop')).toMatchObject({
      background: false,
      max_tool_calls: null,
      parallel_tool_calls: true,
      previous_response_id: null,
      reasoning: { effort: null, summary: null },
      service_tier: 'default',
      store: false,
      temperature: 1,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [],
      top_logprobs: 0,
      top_p: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
      truncation: 'disabled',
    });
  });

  test('has its usage, or null if none is known', () => {
    expect(write('stop')['usage']).toEqual({
      input_tokens: 11,
      input_tokens_details: { cached_tokens: 5, cache_write_tokens: 0 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 6 },
      total_tokens: 18,
    });
    expect(write('stop', null)['usage']).toBeNull();
  });

  test('has the JSON content type, and writes no failure, which is an HTTP error instead', () => {
    const writer = createResponsesResultWriter(identity, extras);
    expect(writer.contentType).toMatch(/^application\/json\b/);
    expect(writer.fail(refuse('upstream_error', 'x'), null)).toBe('');
    expect(writer.tearDownOnFailure).toBe(false);
  });
});

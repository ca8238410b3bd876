import { describe, expect, test } from 'vitest';
import { createChatResultWriter } from '../../../src/protocol/chat/write-answer.ts';
import { refuse } from '../../../src/shared/errors.ts';
import { detailedUsage as usage, identity } from '../../support/answers.ts';

describe('a chat completion', () => {
  test('joins the texts into one object, and is sent only at the end', () => {
    const writer = createChatResultWriter(identity);
    expect([writer.delta('a "b"\n'), writer.delta('😀')]).toEqual(['', '']);
    const body = writer.finish(
      { kind: 'finished', reason: 'length', rawReason: 'MAX_TOKENS', usage },
      9,
      null,
    );
    expect(JSON.parse(body)).toEqual({
      id: 'chatcmpl-0123456789abcdef',
      object: 'chat.completion',
      created: 1_800_000_000,
      model: 'a/"b"',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'a "b"\n😀', refusal: null, annotations: [] },
          logprobs: null,
          finish_reason: 'length',
        },
      ],
      usage: {
        prompt_tokens: 11,
        completion_tokens: 7,
        total_tokens: 18,
        prompt_tokens_details: { cached_tokens: 5, cache_write_tokens: 0, audio_tokens: 0 },
        completion_tokens_details: {
          reasoning_tokens: 6,
          audio_tokens: 0,
          accepted_prediction_tokens: 0,
          rejected_prediction_tokens: 0,
        },
      },
      system_fingerprint: 'fp_textgate',
    });
    expect(Object.keys(JSON.parse(body) as object)).toEqual([
      'id',
      'object',
      'created',
      'model',
      'choices',
      'usage',
      'system_fingerprint',
    ]);
  });

  test('without text has an empty content, and no usage if none is known', () => {
    const writer = createChatResultWriter(identity);
    const finish = { kind: 'finished', reason: 'stop', rawReason: 'stop', usage: null } as const;
    const body = JSON.parse(writer.finish(finish, 9, null)) as Record<string, unknown>;
    expect(body).toMatchObject({ choices: [{ message: { content: '' }, finish_reason: 'stop' }] });
    expect(body).not.toHaveProperty('usage');
  });

  test('has the JSON content type, and writes no failure, which is an HTTP error instead', () => {
    const writer = createChatResultWriter(identity);
    expect(writer.contentType).toMatch(/^application\/json\b/);
    expect(writer.delta('x') + writer.fail(refuse('upstream_error', 'x'), null)).toBe('');
    expect(writer.tearDownOnFailure).toBe(false);
  });
});

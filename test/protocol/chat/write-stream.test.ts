import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createChatStreamWriter } from '../../../src/protocol/chat/write-answer.ts';
import type { FinishedAnswer, FinishReason } from '../../../src/protocol/text.ts';
import { refuse } from '../../../src/shared/errors.ts';
import { parseFrames } from '../../support/parse-frames.ts';
import { propertyRun } from '../../support/property-run.ts';
import { identity, plainUsage as usage } from '../../support/answers.ts';

const finish = (reason: FinishReason = 'stop', more: Partial<FinishedAnswer> = {}): FinishedAnswer => ({
  kind: 'finished',
  reason,
  rawReason: reason,
  usage,
  ...more,
});

const envelope = {
  id: 'chatcmpl-0123456789abcdef',
  object: 'chat.completion.chunk',
  created: 1_800_000_000,
  model: 'a/"b"',
  system_fingerprint: 'fp_textgate',
};
const choice = (delta: object, reason: string | null = null) => ({
  ...envelope,
  choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
});
const opening = choice({ role: 'assistant', content: '', refusal: null });

/** The data of all frames of one written stream; none of them has an event name. */
function write(texts: readonly string[], ending: FinishedAnswer, includeUsage = false): unknown[] {
  const writer = createChatStreamWriter(identity, includeUsage);
  const frames = parseFrames(
    texts.map((text) => writer.delta(text)).join('') + writer.finish(ending, 9, null),
  );
  expect(frames.filter(({ name }) => name !== null)).toEqual([]);
  return frames.map(({ data }) => data);
}

describe('a chat stream', () => {
  test('sends the role once and first, then the texts, the reason, and [DONE]', () => {
    expect(write(['a "b"\n', '\u2028😀'], finish('length'))).toEqual([
      opening,
      choice({ content: 'a "b"\n' }),
      choice({ content: '\u2028😀' }),
      choice({}, 'length'),
      '[DONE]',
    ]);
  });

  test('has the keys of its chunks in the order of OpenAI', () => {
    const keys = write(['a'], finish(), true).map((chunk) =>
      chunk === '[DONE]' ? [] : Object.keys(chunk as object),
    );
    const whole = ['id', 'object', 'created', 'model', 'system_fingerprint', 'choices'];
    expect(keys).toEqual([whole, whole, whole, [...whole, 'usage'], []]);
  });

  test('sends the role even without text', () => {
    expect(write([], finish('content_filter'))).toEqual([opening, choice({}, 'content_filter'), '[DONE]']);
  });

  test('sends usage on request, on a chunk of its own before [DONE]', () => {
    const counts = {
      prompt_tokens: 11,
      completion_tokens: 7,
      total_tokens: 18,
      prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: 0,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    };
    expect(write(['a'], finish(), true)).toEqual([
      opening,
      choice({ content: 'a' }),
      choice({}, 'stop'),
      { ...envelope, choices: [], usage: counts },
      '[DONE]',
    ]);
  });

  test('invents no usage if none is known', () => {
    expect(write(['a'], finish('stop', { usage: null }), true)).toEqual([
      opening,
      choice({ content: 'a' }),
      choice({}, 'stop'),
      '[DONE]',
    ]);
  });

  test('sends the unified reason, not the upstream’s own', () => {
    expect(write([], finish('stop', { rawReason: 'eos_token' })).at(-2)).toEqual(choice({}, 'stop'));
  });

  test('sends each text at once, in whole frames', () => {
    const writer = createChatStreamWriter(identity, false);
    expect(parseFrames(writer.delta('a'))).toHaveLength(2);
    expect(parseFrames(writer.delta('b'))).toHaveLength(1);
    expect(writer.contentType).toMatch(/^text\/event-stream\b/);
  });

  test('carries any text unchanged', () => {
    const texts = fc.array(fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }), { maxLength: 5 });
    fc.assert(
      fc.property(texts, fc.boolean(), (said, includeUsage) => {
        const chunks = write(said, finish(), includeUsage) as {
          choices?: { delta: { content?: string } }[];
        }[];
        const written = chunks.flatMap((chunk) => chunk.choices?.[0]?.delta.content ?? []);
        expect(written).toEqual(['', ...said]);
      }),
      propertyRun(100),
    );
  });
});

describe('a chat stream that fails', () => {
  const refusal = refuse('upstream_truncated', 'cut off');
  const error = { message: 'cut off', type: 'server_error', param: null, code: 'upstream_truncated' };

  test.each([false, true])(
    'ends in one error frame, with no reason and no [DONE] (usage: %s)',
    (withUsage) => {
      const writer = createChatStreamWriter(identity, withUsage);
      writer.delta('a');
      const text = writer.fail(refusal, null);
      expect(parseFrames(text)).toEqual([{ name: null, data: { error } }]);
      expect(text).not.toContain('[DONE]');
      expect(text).not.toContain('finish_reason');
    },
  );

  test('must be torn down, since no event tells the client that it is incomplete', () => {
    expect(createChatStreamWriter(identity, false).tearDownOnFailure).toBe(true);
  });
});

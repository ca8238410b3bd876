import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Usage } from '../../../src/protocol/text.ts';
import { chatDialect } from '../../../src/protocol/upstream/chat.ts';
import { propertyRun } from '../../support/property-run.ts';
import { readUpstream, streamReader, summarize } from '../../support/read-upstream.ts';

const chunk = (content: string, reason: string | null, extra: object = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: reason }], ...extra })}\n\n`;
const usageOnly = (usage: unknown) => `data: ${JSON.stringify({ choices: [], usage })}\n\n`;
const usageOf = (...frames: string[]) => summarize(readUpstream(streamReader(chatDialect), frames)).usage;
const read = (usage: unknown) => usageOf(chunk('x', 'stop'), usageOnly(usage));

const counted = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
const asUsage: Usage = {
  inputTokens: 11,
  cachedInputTokens: 0,
  outputTokens: 7,
  reasoningTokens: 0,
  totalTokens: 18,
};

describe('usage is found', () => {
  const early = { prompt_tokens: 11, completion_tokens: 1, total_tokens: 12 };

  test.each<[string, string[]]>([
    ['on a chunk of its own', [chunk('x', null), chunk('', 'stop'), usageOnly(counted)]],
    ['on the finish chunk', [chunk('x', null), chunk('', 'stop', { usage: counted })]],
    ['on the chunk of the last text', [chunk('x', 'stop', { usage: counted })]],
    [
      'on every chunk, where the last one counts',
      [chunk('x', null, { usage: early }), chunk('y', 'stop', { usage: counted })],
    ],
    [
      'before chunks that say null or nothing',
      [chunk('x', null, { usage: counted }), chunk('y', 'stop', { usage: null }), chunk('', null)],
    ],
    ['before the finish reason', [usageOnly(counted), chunk('x', 'stop')]],
    ['beside a provider’s own copy', [chunk('x', 'stop', { x_groq: { usage: early }, usage: counted })]],
  ])('%s', (_name, frames) => {
    expect(usageOf(...frames, 'data: [DONE]\n\n')).toEqual(asUsage);
    expect(usageOf(...frames)).toEqual(asUsage);
  });

  test.each<[string, unknown]>([
    ['nowhere', undefined],
    ['as null', null],
    ['as text', '18'],
    ['as a list', [counted]],
    ['as a number', 18],
  ])('not %s', (_name, usage) => {
    expect(read(usage)).toBeNull();
  });
});

describe('usage is counted', () => {
  test('with the parts that are cached and thought', () => {
    const usage = {
      ...counted,
      prompt_tokens_details: { cached_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 6 },
    };
    expect(read(usage)).toEqual({ ...asUsage, cachedInputTokens: 5, reasoningTokens: 6 });
  });

  test.each<[string, object, number, number]>([
    ['DeepSeek', { prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 7 }, 4, 0],
    ['Moonshot and Together', { cached_tokens: 4 }, 4, 0],
    ['SGLang', { reasoning_tokens: 3, prompt_tokens_details: null }, 0, 3],
    [
      'both OpenAI and DeepSeek, where OpenAI’s counts',
      { prompt_tokens_details: { cached_tokens: 5 }, prompt_cache_hit_tokens: 4 },
      5,
      0,
    ],
    [
      'OpenAI with none, which is believed',
      { prompt_tokens_details: { cached_tokens: 0 }, cached_tokens: 4 },
      0,
      0,
    ],
  ])('with its parts as %s names them', (_name, parts, cachedInputTokens, reasoningTokens) => {
    expect(read({ ...counted, ...parts })).toEqual({ ...asUsage, cachedInputTokens, reasoningTokens });
  });

  test('with thoughts that only the total holds: output is what the total leaves', () => {
    expect(read({ prompt_tokens: 12, completion_tokens: 1, total_tokens: 303 })).toEqual({
      ...asUsage,
      inputTokens: 12,
      outputTokens: 291,
      totalTokens: 303,
    });
  });

  test('with a total that is too small: the parts are believed', () => {
    expect(read({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 3 })).toEqual(asUsage);
    expect(read({ prompt_tokens: 11, completion_tokens: 7 })).toEqual(asUsage);
  });

  test('with parts that are never larger than their whole', () => {
    const usage = {
      ...counted,
      prompt_tokens_details: { cached_tokens: 500 },
      completion_tokens_details: { reasoning_tokens: 600 },
    };
    expect(read(usage)).toEqual({ ...asUsage, cachedInputTokens: 11, reasoningTokens: 7 });
  });

  test.each([-1, '7', 1e300, 1.5, null, true, {}, [7]])('with %j as nothing', (absurd) => {
    expect(read({ prompt_tokens: absurd, completion_tokens: absurd, total_tokens: absurd })).toBeNull();
    expect(read({ ...counted, completion_tokens: absurd, total_tokens: absurd })).toEqual({
      ...asUsage,
      outputTokens: 0,
      totalTokens: 11,
    });
    expect(read({ ...counted, total_tokens: absurd })).toEqual(asUsage);
    expect(
      read({
        ...counted,
        prompt_tokens_details: { cached_tokens: absurd },
        completion_tokens_details: { reasoning_tokens: absurd },
      }),
    ).toEqual(asUsage);
    expect(read({ ...counted, prompt_tokens_details: absurd, completion_tokens_details: absurd })).toEqual(
      asUsage,
    );
  });

  test('as whole numbers that add up, whatever the upstream says', () => {
    const anything = fc.oneof(fc.nat(100_000), fc.jsonValue({ maxDepth: 1 }));
    const usage = fc.record(
      {
        prompt_tokens: anything,
        completion_tokens: anything,
        total_tokens: anything,
        prompt_tokens_details: fc.record({ cached_tokens: anything }),
        completion_tokens_details: fc.record({ reasoning_tokens: anything }),
        prompt_cache_hit_tokens: anything,
        reasoning_tokens: anything,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(usage, (said) => {
        const seen = read(said);
        const named = [said.prompt_tokens, said.completion_tokens, said.total_tokens];
        expect(seen !== null).toBe(
          named.some((count) => Number.isInteger(count) && Number(count) >= 0 && Number(count) <= 1e12),
        );
        for (const count of Object.values(seen ?? {}))
          expect(Number.isInteger(count) && count >= 0).toBe(true);
        if (seen === null) return;
        const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens, totalTokens } = seen;
        expect(totalTokens).toBe(inputTokens + outputTokens);
        expect(cachedInputTokens <= inputTokens && reasoningTokens <= outputTokens).toBe(true);
      }),
      propertyRun(),
    );
  });
});

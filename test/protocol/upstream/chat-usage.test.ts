import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Usage } from '../../../src/protocol/text.ts';
import { chatDialect } from '../../../src/protocol/upstream/chat.ts';
import { createReader } from '../../../src/protocol/upstream/read-answer.ts';
import { propertyRun } from '../../support/property-run.ts';
import { readUpstream, streamReader, summarize } from '../../support/read-upstream.ts';
import { plainSanitiser } from '../../support/sanitiser.ts';

const chunk = (content: string, reason: string | null, extra: object = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: reason }], ...extra })}\n\n`;
const usageOnly = (usage: unknown) => `data: ${JSON.stringify({ choices: [], usage })}\n\n`;
const usageOf = (...frames: string[]) => summarize(readUpstream(streamReader(chatDialect), frames)).usage;
const read = (usage: unknown) => usageOf(chunk('x', 'stop'), usageOnly(usage));

const counted = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
const asUsage: Usage = {
  inputTokens: 11,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 7,
  reasoningTokens: 0,
  totalTokens: 18,
};

describe('the usage of a chat stream', () => {
  const early = { prompt_tokens: 11, completion_tokens: 1, total_tokens: 12 };

  test.each<[string, string[]]>([
    ['on a separate chunk', [chunk('x', null), chunk('', 'stop'), usageOnly(counted)]],
    ['on the finish chunk', [chunk('x', null), chunk('', 'stop', { usage: counted })]],
    ['on the chunk of the last text', [chunk('x', 'stop', { usage: counted })]],
    [
      'on every chunk, and the last one counts',
      [chunk('x', null, { usage: early }), chunk('y', 'stop', { usage: counted })],
    ],
    [
      'before chunks without text whose usage is null or missing',
      [chunk('x', null, { usage: counted }), chunk('', 'stop', { usage: null }), chunk('', null)],
    ],
    ['before the finish reason', [chunk('x', null), usageOnly(counted), chunk('', 'stop')]],
    ['beside a provider’s own copy', [chunk('x', 'stop', { x_groq: { usage: early }, usage: counted })]],
  ])('is found %s', (_name, frames) => {
    expect(usageOf(...frames, 'data: [DONE]\n\n')).toEqual(asUsage);
    expect(usageOf(...frames)).toEqual(asUsage);
  });

  test.each<[string, unknown]>([
    ['when it is absent', undefined],
    ['as null', null],
    ['as text', '18'],
    ['as a list', [counted]],
    ['as a number', 18],
  ])('is not found %s', (_name, usage) => {
    expect(read(usage)).toBeNull();
  });
});

test('the usage of a chat stream is not found before the last text, whatever else is in its place there', () => {
  const frames = [chunk('x', null, { usage: counted }), chunk('y', 'stop', { usage: 'none' })];
  expect(usageOf(...frames)).toBeNull();
});

describe('the usage of a chat answer', () => {
  test('includes cached and reasoning tokens as details', () => {
    const usage = {
      ...counted,
      prompt_tokens_details: { cached_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 6 },
    };
    expect(read(usage)).toEqual({
      ...asUsage,
      cachedInputTokens: 5,
      cacheWriteTokens: 0,
      reasoningTokens: 6,
    });
  });

  test.each<[string, object, number, number]>([
    ['DeepSeek', { prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 7 }, 4, 0],
    ['Moonshot and Together', { cached_tokens: 4 }, 4, 0],
    ['SGLang', { reasoning_tokens: 3, prompt_tokens_details: null }, 0, 3],
    [
      'both OpenAI and DeepSeek, and OpenAI’s is used',
      { prompt_tokens_details: { cached_tokens: 5 }, prompt_cache_hit_tokens: 4 },
      5,
      0,
    ],
    [
      'both, with zeros for what one of them did not count',
      { prompt_tokens_details: { cached_tokens: 0 }, cached_tokens: 4 },
      4,
      0,
    ],
    ['Responses', { input_tokens_details: { cached_tokens: 4 } }, 4, 0],
  ])('includes the details as named by %s', (_name, parts, cachedInputTokens, reasoningTokens) => {
    expect(read({ ...counted, ...parts })).toEqual({ ...asUsage, cachedInputTokens, reasoningTokens });
  });

  test('has reasoning as its output when only the total includes it', () => {
    const reasoning = { completion_tokens_details: { reasoning_tokens: 290 } };
    expect(read({ prompt_tokens: 12, completion_tokens: 1, total_tokens: 303, ...reasoning })).toEqual({
      ...asUsage,
      inputTokens: 12,
      outputTokens: 291,
      reasoningTokens: 290,
      totalTokens: 303,
    });
  });

  test('has the part of the reasoning as its output that only the total includes', () => {
    const reasoning = { completion_tokens_details: { reasoning_tokens: 290 } };
    expect(
      read({ prompt_tokens: 12, completion_tokens: 101, total_tokens: 303, ...reasoning }),
    ).toMatchObject({
      outputTokens: 291,
    });
  });

  test('is read by the names of Responses', () => {
    const usage = { input_tokens: 11, output_tokens: 7, output_tokens_details: { reasoning_tokens: 6 } };
    expect(read(usage)).toEqual({ ...asUsage, reasoningTokens: 6 });
  });

  test('ignores a total that is smaller than its parts', () => {
    expect(read({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 3 })).toEqual(asUsage);
    expect(read({ prompt_tokens: 11, completion_tokens: 7 })).toEqual(asUsage);
  });

  test.each([-1, '7', 1e300, 1.5, null, true, {}, [7]])('ignores %j as a count', (absurd) => {
    expect(read({ prompt_tokens: absurd, completion_tokens: absurd, total_tokens: absurd })).toBeNull();
    expect(read({ ...counted, completion_tokens: absurd, total_tokens: absurd })).toBeNull();
    expect(read({ ...counted, prompt_tokens: absurd })).toBeNull();
    expect(read({ ...counted, total_tokens: absurd })).toEqual(asUsage);
    expect(
      read({
        ...counted,
        prompt_tokens_details: { cache_write_tokens: absurd },
        completion_tokens_details: { reasoning_tokens: absurd },
      }),
    ).toEqual(asUsage);
    expect(read({ ...counted, prompt_tokens_details: absurd, completion_tokens_details: absurd })).toEqual(
      asUsage,
    );
  });

  test('consists of integers that add up, for any report of the upstream', () => {
    const anything = fc.oneof(fc.nat(100_000), fc.jsonValue({ maxDepth: 1 }));
    const usage = fc.record(
      {
        prompt_tokens: anything,
        completion_tokens: anything,
        total_tokens: anything,
        prompt_tokens_details: fc.record({ cached_tokens: anything, cache_write_tokens: anything }),
        completion_tokens_details: fc.record({ reasoning_tokens: anything }),
        prompt_cache_hit_tokens: anything,
        reasoning_tokens: anything,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(usage, (said) => {
        const seen = read(said);
        const isCount = (value: unknown, most: number): boolean =>
          Number.isInteger(value) && Number(value) > 0 && Number(value) <= most;
        // All of the input may stand beside the prompt, as read from a cache or written to it.
        const isAllBeside =
          seen !== null && said.prompt_tokens === 0 && seen.cachedInputTokens + seen.cacheWriteTokens > 0;
        expect(seen === null || isAllBeside || isCount(said.prompt_tokens, 100_000)).toBe(true);
        for (const count of Object.values(seen ?? {}))
          expect(Number.isInteger(count) && count >= 0).toBe(true);
        if (seen === null) return;
        const {
          inputTokens,
          cachedInputTokens,
          cacheWriteTokens,
          outputTokens,
          reasoningTokens,
          totalTokens,
        } = seen;
        expect(totalTokens).toBe(inputTokens + outputTokens);
        expect(cachedInputTokens + cacheWriteTokens <= inputTokens && reasoningTokens <= outputTokens).toBe(
          true,
        );
      }),
      propertyRun(),
    );
  });
});

describe('unusable usage', () => {
  const judge = (frames: readonly string[], sentTokens = 100) => {
    const terms = { contentType: 'text/event-stream', streamAsked: true, finishReason: 'required' } as const;
    const reader = createReader(chatDialect, {
      ...terms,
      thoughtTag: null,
      sentTokens,
      isFast: true,
      sanitise: plainSanitiser,
    });
    const { usage } = summarize(readUpstream(reader, [...frames, 'data: [DONE]\n\n']));
    return [usage, ...reader.answer.violations];
  };
  const say = (usage: unknown) => judge([chunk('some text', 'stop'), usageOnly(usage)]);
  const counts = (prompt_tokens: unknown, completion_tokens: unknown) => ({
    prompt_tokens,
    completion_tokens,
  });
  const missing = [null, 'missing_usage'];
  const implausible = [null, 'implausible_usage'];

  test.each<[string, unknown]>([
    ['no output', counts(10, undefined)],
    ['a null output', counts(10, null)],
    ['a negative output', counts(10, -3)],
    ['a fractional output', counts(10, 1.5)],
    ['an output of 0 beside text', counts(10, 0)],
    ['no input', counts(undefined, 5)],
    ['an input of 0', counts(0, 5)],
    ['only a total', { total_tokens: 500 }],
    ['only zeros', { ...counts(0, 0), total_tokens: 0 }],
    ['a total, but no output', { prompt_tokens: 10, total_tokens: 15 }],
  ])('with %s counts as missing', (_name, usage) => {
    expect(say(usage)).toEqual(missing);
  });

  test('reported before the last of the text counts as missing', () => {
    expect(judge([chunk('a', null, { usage: counts(10, 1) }), chunk('b', 'stop')])).toEqual(missing);
    const again = chunk('', null, { usage: counts(10, null) });
    expect(judge([chunk('a', null, { usage: counts(10, 1) }), chunk('b', 'stop'), again])).toEqual(missing);
  });

  test.each([
    ['output', counts(10, 30), counts(10, 1)],
    ['output, although its input was estimated again', counts(10, 30), counts(9, 29)],
    ['input, in a report without output', counts(10, 30), counts(9, undefined)],
  ])('with a shrinking %s counts as implausible', (_name, early, late) => {
    const [usage, violation] = judge([
      chunk('some text', null, { usage: early }),
      chunk('', 'stop', { usage: late }),
    ]);
    expect(usage).toBeNull();
    expect(violation).toBe('implausible_usage');
  });

  test('with more input than the sent text and the provider’s additions counts as implausible', () => {
    const most = 100 + 131_072;
    expect(say(counts(most, 5))).toEqual([expect.objectContaining({ inputTokens: most })]);
    expect(say(counts(most + 1, 5))).toEqual(implausible);
    expect(say(counts(1e9, 5))).toEqual(implausible);
    expect(say(counts(1e300, 5))).toEqual(missing);
    expect(say(counts(Number.MAX_SAFE_INTEGER, 5))).toEqual(implausible);
  });

  test('with more output than the received text and hidden thoughts counts as implausible', () => {
    const most = 'some text'.length + 272_000;
    expect(say(counts(10, most))).toEqual([expect.objectContaining({ outputTokens: most })]);
    expect(say(counts(10, most + 1))).toEqual(implausible);
    const thoughts = `data: ${JSON.stringify({ choices: [{ delta: { reasoning_content: 'hm' } }] })}\n\n`;
    const seen = judge([thoughts, chunk('some text', 'stop'), usageOnly(counts(10, most + 2))]);
    expect(seen).toEqual([expect.objectContaining({ outputTokens: most + 2 })]);
  });

  test.each([
    ['without a total', {}],
    ['with a total of prompt and completion', { total_tokens: 15 }],
    ['with a total that is smaller', { total_tokens: 3 }],
  ])('is not what has more reasoning than output, %s: the output counts, and a violation', (_name, total) => {
    const reasoning = (tokens: number) => ({ completion_tokens_details: { reasoning_tokens: tokens } });
    const seen = expect.objectContaining({ outputTokens: 5, reasoningTokens: 5 });
    expect(say({ ...counts(10, 5), ...total, ...reasoning(5) })).toEqual([seen]);
    expect(say({ ...counts(10, 5), ...total, ...reasoning(6) })).toEqual([seen, 'excess_reasoning']);
    expect(say({ ...counts(10, 5), total_tokens: 21, ...reasoning(6) })).toEqual([
      expect.objectContaining({ outputTokens: 11, reasoningTokens: 6 }),
    ]);
  });

  test('with fewer output tokens than the received text can have counts as implausible', () => {
    const long = chunk('x'.repeat(512), 'stop');
    expect(judge([long, usageOnly(counts(10, 2))])).toEqual([expect.objectContaining({ outputTokens: 2 })]);
    expect(judge([long, usageOnly(counts(10, 1))])).toEqual(implausible);
  });
});

describe('usage with an estimate at the start and exact counts at the end', () => {
  const exact = { prompt_tokens: 80, completion_tokens: 5 };
  const asCounted = { inputTokens: 80, outputTokens: 5, totalTokens: 85 };

  test.each([
    ['larger', { prompt_tokens: 100, completion_tokens: 1 }],
    ['larger, with a total that the last report leaves out', { prompt_tokens: 100, total_tokens: 100 }],
    ['smaller', { prompt_tokens: 70, completion_tokens: 1 }],
  ])('has the exact counts when the estimate is %s', (_name, estimate) => {
    expect(
      usageOf(chunk('a', null, { usage: estimate }), chunk('b', 'stop'), usageOnly(exact)),
    ).toMatchObject(asCounted);
    const none = chunk('', null, { usage: {} });
    expect(usageOf(chunk('ab', 'stop', { usage: estimate }), usageOnly(exact), none)).toMatchObject(
      asCounted,
    );
  });
});

describe('the usage of an answer without text', () => {
  test('may have no output', () => {
    const usage = { prompt_tokens: 10, completion_tokens: 0 };
    expect(usageOf(chunk('', 'stop'), usageOnly(usage))).toMatchObject({ inputTokens: 10, outputTokens: 0 });
  });
});

describe('the cached input of a usage report', () => {
  test.each([
    [{ prompt_tokens_details: { cache_read_input_tokens: 4 } }],
    [{ cache_read_input_tokens: 4, cache_creation_input_tokens: 0 }],
  ])('is read from %j', (parts) => {
    expect(read({ ...counted, ...parts })).toEqual({ ...asUsage, cachedInputTokens: 4 });
  });
});

describe('the cached input of a usage report that is no number of tokens', () => {
  const withCached = (cached_tokens: unknown) => ({ ...counted, prompt_tokens_details: { cached_tokens } });

  test.each(['4', '04'])('is read where %j is plainly a whole number', (written) => {
    expect(read(withCached(written))).toEqual({ ...asUsage, cachedInputTokens: 4 });
  });

  // The output is what the provider named, thoughts too, which our own count does not see.
  test.each([4.5, -4, -1, 1e300, '4.5', '-4', 'n/a', ' 4', '9'.repeat(16), null, '', '0', true, {}, [7]])(
    'is none as %j',
    (none) => {
      expect(read(withCached(none))).toEqual(asUsage);
    },
  );

  test('does not count beside another name or a later report with a count', () => {
    const fourCached = { ...asUsage, cachedInputTokens: 4 };
    expect(read({ ...withCached(-1), cached_tokens: 4 })).toEqual(fourCached);
    const good = withCached(4);
    expect(usageOf(chunk('x', 'stop'), usageOnly(withCached(-1)), usageOnly(good))).toEqual(fourCached);
    expect(usageOf(chunk('x', 'stop'), usageOnly(good), usageOnly(withCached(-1)))).toEqual(fourCached);
    expect(usageOf(chunk('x', 'stop'), usageOnly(withCached(-1)), usageOnly(withCached(0)))).toEqual(asUsage);
  });
});

describe('the cache writes of a usage report', () => {
  test.each([
    [{ prompt_tokens_details: { cache_write_tokens: 4 } }],
    [{ prompt_tokens_details: { cache_creation_input_tokens: 4 } }],
    [{ cache_creation_input_tokens: 4 }],
  ])('are read from %j', (parts) => {
    expect(read({ ...counted, ...parts })).toEqual({ ...asUsage, cacheWriteTokens: 4 });
  });

  test('are counted by how long they are kept where they have no sum', () => {
    const cache_creation = { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 1 };
    expect(read({ ...counted, cache_creation })).toEqual({ ...asUsage, cacheWriteTokens: 4 });
  });
});

describe('input that was read from a cache or written to it', () => {
  const cached = { cache_read_input_tokens: 10_500 };
  const written = { cache_creation_input_tokens: 200 };
  const nested = { prompt_tokens_details: { cached_tokens: 10_500 } };
  const counts = (total_tokens?: number) => ({ prompt_tokens: 300, completion_tokens: 20, total_tokens });
  const reasoning = { completion_tokens_details: { reasoning_tokens: 60 } };

  test.each<[string, object, object]>([
    ['its own name', { ...counts(10_820), ...cached }, { inputTokens: 10_800, outputTokens: 20 }],
    ['OpenAI’s details', { ...counts(10_820), ...nested }, { inputTokens: 10_800, outputTokens: 20 }],
    [
      'its own name beside details of zeros',
      { ...counts(10_820), ...cached, prompt_tokens_details: { cached_tokens: 0 } },
      { inputTokens: 10_800, outputTokens: 20 },
    ],
    ['no total', { ...counts(), ...cached }, { inputTokens: 10_800, outputTokens: 20 }],
    [
      'a total of prompt and completion',
      { ...counts(320), ...cached },
      { inputTokens: 10_800, outputTokens: 20 },
    ],
    [
      'writes beside it, too',
      { ...counts(11_020), ...cached, ...written },
      { inputTokens: 11_000, cacheWriteTokens: 200, outputTokens: 20 },
    ],
    [
      'reasoning beside the completion',
      { ...counts(10_880), ...cached, ...reasoning },
      { inputTokens: 10_800, outputTokens: 80, reasoningTokens: 60 },
    ],
  ])('stands beside the prompt where only that adds up, reported with %s', (_name, usage, expected) => {
    expect(read(usage)).toMatchObject({ cachedInputTokens: 10_500, ...expected });
  });

  test.each<[string, object, object]>([
    ['all', { total_tokens: 140 }, { inputTokens: 120, outputTokens: 20 }],
    [
      'what was read',
      { total_tokens: 130, cache_creation_input_tokens: 10 },
      { inputTokens: 110, outputTokens: 20 },
    ],
    [
      'what was written',
      { total_tokens: 125, cache_creation_input_tokens: 5 },
      { inputTokens: 105, outputTokens: 20 },
    ],
  ])('may stand beside the prompt in parts: %s', (name, more, expected) => {
    const usage = {
      prompt_tokens: 100,
      completion_tokens: 20,
      cached_tokens: name === 'all' ? 20 : name === 'what was read' ? 10 : 40,
      ...more,
    };
    expect(read(usage)).toMatchObject(expected);
  });
});

describe('a report of zeros', () => {
  const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

  test.each([
    ['all', zeros],
    ['its output', { prompt_tokens: 11, completion_tokens: 0, total_tokens: 11 }],
    ['its input', { prompt_tokens: 0, completion_tokens: 7 }],
    ['its details', { ...zeros, prompt_tokens_details: { cached_tokens: 0 } }],
  ])('does not erase an earlier one: %s', (_name, late) => {
    const good = { ...counted, cached_tokens: 4 };
    expect(usageOf(chunk('x', 'stop', { usage: good }), usageOnly(late))).toEqual({
      ...asUsage,
      cachedInputTokens: 4,
    });
  });
});

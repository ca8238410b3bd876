import { describe, expect, test } from 'vitest';
import type { TextRequest } from '../../../src/protocol/text.ts';
import { geminiDialect } from '../../../src/protocol/upstream/gemini.ts';
import { bodyReader, readUpstream, streamReader, summarize } from '../../support/read-upstream.ts';
import { usualQuirks } from '../../support/model-source.ts';
import { plainUsage as usage } from '../../support/answers.ts';

const frame = (data: unknown) => `data: ${JSON.stringify(data)}\r\n\r\n`;
const candidate = (parts: readonly unknown[], reason?: unknown) => ({
  content: { parts, role: 'model' },
  ...(reason === undefined ? {} : { finishReason: reason }),
  index: 0,
});
const chunk = (parts: readonly unknown[], reason?: unknown, extra: object = {}) => ({
  candidates: [candidate(parts, reason)],
  ...extra,
});
const event = (parts: readonly unknown[], reason?: unknown, extra: object = {}) =>
  frame(chunk(parts, reason, extra));
const say = (text: unknown, reason?: unknown) => event([{ text }], reason);
const counted = (counts: object) => ({ usageMetadata: counts });

const counts = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 };
const ordinary = [say('one '), say('zwei: é€😀'), event([{ text: '!' }], 'STOP', counted(counts))];
const ordinaryText = 'one zwei: é€😀!';

const read = (...frames: (string | Uint8Array)[]) =>
  summarize(readUpstream(streamReader(geminiDialect), frames));
const outcome = (...frames: string[]) => {
  const { text, ending } = read(...frames);
  return [text, ending];
};
const readWhole = (body: unknown) =>
  summarize(readUpstream(bodyReader(geminiDialect), [JSON.stringify(body)]));
const whole = (body: unknown) => {
  const { text, ending } = readWhole(body);
  return [text, ending];
};

describe('a generateContent stream', () => {
  test('yields each text as it arrives, then its ending with the raw reason and the usage', () => {
    expect(readUpstream(streamReader(geminiDialect), ordinary)).toEqual([
      { type: 'delta', text: 'one ' },
      { type: 'delta', text: 'zwei: é€😀' },
      { type: 'delta', text: '!' },
      { type: 'finish', reason: 'stop', rawReason: 'STOP', usage },
    ]);
  });

  test('ends with its body, without a violation for the missing end marker', () => {
    const reader = streamReader(geminiDialect);
    const { deltas, ending } = reader.push(new TextEncoder().encode(ordinary.join('')));
    expect([deltas.length, ending]).toEqual([3, null]);
    expect(reader.end()).toMatchObject({ deltas: [], ending: { kind: 'finished', reason: 'stop' } });
    expect([...reader.answer.violations]).toEqual([]);
  });

  test('reads the same wherever its bytes are split', () => {
    const bytes = Buffer.from(ordinary.join(''));
    const expected = { text: ordinaryText, ending: 'stop', usage };
    for (let cut = 0; cut <= bytes.length; cut++)
      expect(read(bytes.subarray(0, cut), bytes.subarray(cut))).toEqual(expected);
  });

  test.each<[string, string[], string, string]>([
    ['with a reason on every event', [say('a', 'STOP'), say('b', 'STOP'), say('c', 'STOP')], 'abc', 'stop'],
    ['with a reason before the last event', [say('a', 'STOP'), say('b')], 'ab', 'upstream_truncated'],
    [
      'with a reason for blocking before the last event',
      [say('a', 'SAFETY'), say('b')],
      'ab',
      'content_filter',
    ],
    [
      'with a reason in the middle of its event',
      [event([{ text: 'a' }, { text: 'b' }], 'STOP')],
      'ab',
      'stop',
    ],
    ['whose last reason differs', [say('a', 'STOP'), say('b', 'RECITATION')], 'ab', 'content_filter'],
    ['with an empty error', [frame({ ...chunk([{ text: 'a' }], 'STOP'), error: {} })], 'a', 'stop'],
    ['whose last event is empty', [say('a'), frame({ candidates: [{ finishReason: 'STOP' }] })], 'a', 'stop'],
    ['whose last event has only counts', [say('a', 'STOP'), frame(counted(counts))], 'a', 'stop'],
    ['with thoughts', [event([{ text: 'hm', thought: true }, { text: 'a' }], 'STOP')], 'a', 'stop'],
    [
      'with signed parts, one of them empty',
      [event([{ text: 'a', thoughtSignature: 's' }]), event([{ thoughtSignature: 's' }, {}], 'STOP')],
      'a',
      'stop',
    ],
    [
      'with code run by the provider',
      [
        event([{ executableCode: { code: '1+1' } }, { codeExecutionResult: { output: '2' } }]),
        say('a', 'STOP'),
      ],
      'a',
      'stop',
    ],
    [
      'with feedback that blocks nothing',
      [frame({ promptFeedback: { safetyRatings: [] } }), say('a', 'STOP')],
      'a',
      'stop',
    ],
    [
      'with a second candidate',
      [frame({ candidates: [{ ...candidate([{ text: 'B' }], 'OTHER'), index: 1 }] }), say('a', 'STOP')],
      'a',
      'stop',
    ],
    [
      'with contents without parts',
      [frame({ candidates: [{ content: {} }] }), event([null, 'x']), say('a', 'STOP')],
      'xa',
      'stop',
    ],
    ['with unset reasons', [say('a', 'FINISH_REASON_UNSPECIFIED'), say('b', 'STOP')], 'ab', 'stop'],
    ['that ends in [DONE] nevertheless', [say('a', 'STOP'), 'data: [DONE]\n\n'], 'a', 'stop'],
    ['that was blocked', [frame({ promptFeedback: { blockReason: 'OTHER' } })], '', 'content_filter'],
    [
      'that was blocked after its beginning',
      [say('a'), frame({ candidates: [], promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } })],
      'a',
      'content_filter',
    ],
  ])('%s yields its text and its ending', (_name, frames, text, ending) => {
    expect(outcome(...frames)).toEqual([text, ending]);
  });

  test.each([0, 1, 2])('that is cut off after %i events is truncated, never finished', (count) => {
    expect(outcome(...ordinary.slice(0, count))[1]).toBe('upstream_truncated');
  });

  test('that is cut off at any byte before the end of its reason is not finished', () => {
    const bytes = Buffer.from(ordinary.join(''));
    const frameEnd = bytes.length - '\r\n\r\n'.length;
    for (let length = 0; length < frameEnd; length++)
      expect(read(bytes.subarray(0, length)).ending).toMatch(/^upstream_(truncated|invalid)$/);
    expect(read(bytes.subarray(0, frameEnd)).ending).toBe('stop');
  });

  test.each([undefined, null, '', 2, 'FINISH_REASON_UNSPECIFIED'])(
    'with %j as its reason has no finish reason',
    (reason) => {
      expect(outcome(say('a', reason))).toEqual(['a', 'upstream_truncated']);
    },
  );
});

describe('the finish reason of a candidate', () => {
  test.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['BLOCKLIST', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['SPII', 'content_filter'],
    ['LANGUAGE', 'content_filter'],
    ['MALFORMED_FUNCTION_CALL', 'upstream_invalid'],
    ['UNEXPECTED_TOOL_CALL', 'upstream_invalid'],
    ['OTHER', 'upstream_error'],
    ['NOVELTY', 'upstream_error'],
  ])('%s ends the answer as %s, streamed and whole, and keeps its text', (reason, ending) => {
    expect(outcome(say('x', reason))).toEqual(['x', ending]);
    expect(whole(chunk([{ text: 'x' }], reason))).toEqual(['x', ending]);
  });
});

describe('a generateContent stream that fails', () => {
  const error = (code: number, status: string) => frame({ error: { code, message: 'm', status } });

  test.each<[string, string, string]>([
    ['a rate limit', error(429, 'RESOURCE_EXHAUSTED'), 'upstream_rate_limited'],
    ['an overload', error(503, 'UNAVAILABLE'), 'overloaded'],
    ['a refused key', error(403, 'PERMISSION_DENIED'), 'upstream_auth'],
    ['a missing key', frame({ error: { status: 'UNAUTHENTICATED' } }), 'upstream_auth'],
    ['a timeout', frame({ error: { status: 'DEADLINE_EXCEEDED' } }), 'upstream_timeout'],
    ['an internal error', error(500, 'INTERNAL'), 'upstream_error'],
    ['an error given as text', frame({ error: 'boom' }), 'upstream_error'],
    ['an error event', 'event: error\ndata: {"code":429}\n\n', 'upstream_rate_limited'],
    ['a tool call', event([{ functionCall: { name: 'f', args: {} } }], 'STOP'), 'upstream_invalid'],
    ['a tool call in its thoughts', event([{ functionCall: {}, thought: true }]), 'upstream_invalid'],
    ['a picture', event([{ inlineData: { mimeType: 'image/png', data: 'abc' } }]), 'upstream_invalid'],
    ['a file', event([{ fileData: { fileUri: 'gs://x' } }]), 'upstream_invalid'],
    ['a number as text', say(7), 'upstream_invalid'],
    ['broken JSON', 'data: {"candidates\n\n', 'upstream_invalid'],
    ['a list', 'data: [{}]\n\n', 'upstream_invalid'],
  ])('by %s ends at once and ignores what follows', (_name, fault, code) => {
    expect(outcome(say('a'), fault, say('b', 'STOP'))).toEqual(['a', code]);
    expect(outcome(say('a', 'STOP'), fault)).toEqual(['a', code]);
  });
});

describe('the usage of a candidate', () => {
  const usageOf = (...all: object[]) =>
    read(
      ...all.map((said, index) =>
        event([{ text: 'x' }], index + 1 === all.length ? 'STOP' : undefined, counted(said)),
      ),
    ).usage;

  test('counts thoughts as output, and the results of the provider’s tools as input', () => {
    const said = {
      promptTokenCount: 21,
      candidatesTokenCount: 96,
      toolUsePromptTokenCount: 160,
      thoughtsTokenCount: 86,
      cachedContentTokenCount: 5,
      totalTokenCount: 363,
    };
    expect(usageOf(said)).toEqual({
      inputTokens: 181,
      cachedInputTokens: 5,
      cacheWriteTokens: 0,
      outputTokens: 182,
      reasoningTokens: 86,
      totalTokens: 363,
    });
  });

  test('is that of its parts if the total is smaller', () => {
    const said = { promptTokenCount: 10, candidatesTokenCount: 2, totalTokenCount: 3 };
    expect(usageOf(said)).toMatchObject({ inputTokens: 10, outputTokens: 2 });
  });

  test.each([
    { promptTokenCount: 10, candidatesTokenCount: 2, totalTokenCount: 40 },
    { promptTokenCount: 10, totalTokenCount: 12 },
  ])('reported as %j is not known: what only the total has may be anything', (said) => {
    expect(usageOf(said)).toBeNull();
  });

  test('is the last one reported, and missing when it counts the prompt alone although text arrived', () => {
    const early = { promptTokenCount: 11, candidatesTokenCount: 1, totalTokenCount: 12 };
    const promptOnly = { promptTokenCount: 11, totalTokenCount: 11 };
    expect(usageOf(early, counts)).toEqual(usage);
    const end = event([], 'STOP', counted({ trafficType: 'ON_DEMAND' }));
    expect(read(event([{ text: 'x' }], undefined, counted(counts)), end).usage).toEqual(usage);
    expect(usageOf(early, promptOnly)).toBeNull();
    expect(usageOf(promptOnly)).toBeNull();
  });

  test('is the final count when the first one was an estimate with more input', () => {
    const estimate = { promptTokenCount: 40, totalTokenCount: 40 };
    const exact = { promptTokenCount: 11, candidatesTokenCount: 7 };
    expect(usageOf(estimate, exact)).toMatchObject({ inputTokens: 11, outputTokens: 7, totalTokens: 18 });
    expect(usageOf({ ...estimate, candidatesTokenCount: 8 }, exact)).toBeNull();
  });

  test('is missing without its input', () => {
    expect(usageOf({ candidatesTokenCount: 18, thoughtsTokenCount: 58 })).toBeNull();
  });

  test('may be the prompt alone when no text arrived', () => {
    const blocked = {
      candidates: [{ finishReason: 'SAFETY' }],
      ...counted({ promptTokenCount: 319, totalTokenCount: 319 }),
    };
    expect(readWhole(blocked)).toMatchObject({
      ending: 'content_filter',
      usage: { inputTokens: 319, outputTokens: 0 },
    });
  });
});

describe('a whole candidate', () => {
  test('yields the same events as its stream', () => {
    const body = chunk([{ text: ordinaryText }], 'STOP', counted(counts));
    expect(readUpstream(bodyReader(geminiDialect), [JSON.stringify(body)])).toEqual([
      { type: 'delta', text: ordinaryText },
      { type: 'finish', reason: 'stop', rawReason: 'STOP', usage },
    ]);
  });

  test.each<[string, unknown, string, string]>([
    ['thoughts', chunk([{ text: 'hm', thought: true }, { text: 'a' }], 'STOP'), 'a', 'stop'],
    ['a block', { promptFeedback: { blockReason: 'SAFETY' } }, '', 'content_filter'],
    [
      'feedback without a reason',
      { candidates: [], promptFeedback: { blockReasonMessage: 'm' } },
      '',
      'upstream_truncated',
    ],
    ['no reason', chunk([{ text: 'a' }]), 'a', 'upstream_truncated'],
    ['a tool call', chunk([{ functionCall: { name: 'f' } }], 'STOP'), '', 'upstream_invalid'],
    ['an error', { error: { code: 429, status: 'RESOURCE_EXHAUSTED' } }, '', 'upstream_rate_limited'],
    ['a list of events', [chunk([{ text: 'a' }]), chunk([{ text: 'b' }], 'STOP')], 'ab', 'stop'],
    ['a list that was cut off', [chunk([{ text: 'a' }]), chunk([{ text: 'b' }])], 'ab', 'upstream_truncated'],
    ['a list with an error', [{ error: { code: 503, status: 'UNAVAILABLE' } }], '', 'overloaded'],
    ['an empty list', [], '', 'upstream_invalid'],
    ['a list of other things', [chunk([{ text: 'a' }], 'STOP'), 7], '', 'upstream_invalid'],
    ['the answer of another protocol', { totalTokens: 258 }, '', 'upstream_invalid'],
  ])('with %s yields its text and its ending', (_name, body, text, ending) => {
    expect(whole(body)).toEqual([text, ending]);
  });
});

describe('a request in the Gemini dialect', () => {
  const request: TextRequest = {
    model: 'ours',
    turns: [
      { role: 'system', text: 's' },
      { role: 'user', text: 'u' },
      { role: 'assistant', text: 'a' },
      { role: 'user', text: 'v' },
    ],
    stream: false,
    includeUsage: false,
    shownCharge: { usageCost: false, chargeComment: false },
    maxOutputTokens: null,
    stop: [],
    promptCacheKey: null,
    responses: null,
    stripped: [],
  };
  const write = (changes: Partial<TextRequest>, model = 'theirs') => {
    const { path, body } = geminiDialect.writeRequest({ ...request, ...changes }, model, usualQuirks);
    return { path, body: JSON.parse(body) as unknown };
  };

  test('has a separate system prompt, Gemini’s role names, and nothing beyond the text', () => {
    expect(write({})).toEqual({
      path: '/models/theirs:generateContent',
      body: {
        systemInstruction: { parts: [{ text: 's' }] },
        contents: [
          { role: 'user', parts: [{ text: 'u' }] },
          { role: 'model', parts: [{ text: 'a' }] },
          { role: 'user', parts: [{ text: 'v' }] },
        ],
      },
    });
  });

  test('has the client’s stop sequences', () => {
    const stop = ['\n', 'END'];
    expect(write({ stop, maxOutputTokens: 9 }).body).toMatchObject({
      generationConfig: { maxOutputTokens: 9, stopSequences: stop },
    });
    expect(write({ stop }).body).toMatchObject({ generationConfig: { stopSequences: stop } });
  });

  test('asks for a stream by its path, and has the client’s cap if there is one', () => {
    expect(write({ turns: [{ role: 'user', text: 'u' }], stream: true, maxOutputTokens: 9 })).toEqual({
      path: '/models/theirs:streamGenerateContent?alt=sse',
      body: {
        contents: [{ role: 'user', parts: [{ text: 'u' }] }],
        generationConfig: { maxOutputTokens: 9 },
      },
    });
  });

  test.each([
    ['gemini-2.5-flash', 'models/gemini-2.5-flash'],
    ['models/gemini-2.5-flash', 'models/gemini-2.5-flash'],
    ['tunedModels/mine', 'tunedModels/mine'],
    ['othermodels/x', 'models/othermodels%2Fx'],
    ['models/../../admin', 'models/..%2F..%2Fadmin'],
    ['x?key=1#y', 'models/x%3Fkey%3D1%23y'],
    ['a b\r\nHost: c', 'models/a%20b%0D%0AHost%3A%20c'],
    ['..', 'models/..'],
    ['\uD800', 'models/%EF%BF%BD'],
  ])('keeps the model name %j within one path segment', (model, resource) => {
    const { path } = write({}, model);
    expect(path).toBe(`/${resource}:generateContent`);
    expect(new URL(`http://host/v1beta${path}`).pathname).toBe(`/v1beta${path}`);
  });

  test('carries the key in x-goog-api-key', () => {
    expect(geminiDialect.auth).toEqual({ header: 'x-goog-api-key', prefix: '' });
  });
});

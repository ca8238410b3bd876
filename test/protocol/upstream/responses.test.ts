import { describe, expect, test } from 'vitest';
import { responsesDialect } from '../../../src/protocol/upstream/responses.ts';
import { bodyReader, readUpstream, streamReader, summarize } from '../../support/read-upstream.ts';
import { usualQuirks } from '../../support/model-source.ts';

const event = (type: string, fields: object = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const delta = (text: string, fields = {}) => event('response.output_text.delta', { delta: text, ...fields });
const message = (text: string) => ({ type: 'message', content: [{ type: 'output_text', text }] });
const usage = { input_tokens: 11, output_tokens: 7, total_tokens: 18 };
const completed = (text: string, extra: object = {}) =>
  event('response.completed', {
    response: { status: 'completed', output: [message(text)], usage, ...extra },
  });
const incomplete = (details: unknown, extra: object = {}) =>
  event('response.incomplete', {
    response: { status: 'incomplete', incomplete_details: details, output: [], usage, ...extra },
  });

const read = (...frames: string[]) => summarize(readUpstream(streamReader(responsesDialect), frames));
const outcome = (...frames: string[]) => {
  const { text, ending } = read(...frames);
  return [text, ending];
};

describe('a Responses stream', () => {
  test('yields its deltas, its end and its usage, and ignores everything else', () => {
    const frames = [
      event('response.created', { response: { id: 'resp_1', status: 'in_progress', output: [] } }),
      event('response.in_progress', { response: { id: 'resp_2' } }),
      event('response.output_item.added', { output_index: 0, item: { type: 'reasoning', id: 'rs_1' } }),
      event('response.reasoning_summary_text.delta', { delta: 'hm' }),
      event('response.reasoning_text.delta', { delta: 'hm' }),
      event('response.output_item.added', { output_index: 1, item: { type: 'message', id: 'msg_1' } }),
      event('response.content_part.added', { part: { type: 'output_text', text: '' } }),
      delta('one ', { item_id: 'msg_2', logprobs: [], obfuscation: 'xyz' }),
      delta('two', { item_id: 'msg_3' }),
      event('response.output_text.done', { text: 'one two' }),
      completed('one two'),
    ];
    expect(read(...frames)).toEqual({
      text: 'one two',
      ending: 'stop',
      usage: {
        inputTokens: 11,
        cachedInputTokens: 0,
        cacheWriteTokens: 0,
        outputTokens: 7,
        reasoningTokens: 0,
        totalTokens: 18,
      },
    });
  });

  test('is not complete if its response says that it was cut off, although it calls itself completed', () => {
    const cut = { incomplete_details: { reason: 'max_output_tokens' } };
    expect(outcome(delta('x'), completed('x', cut))).toEqual(['x', 'length']);
    const output = [{ ...message('x'), status: 'incomplete' }];
    expect(outcome(delta('x'), completed('x', { output }))).toEqual(['x', 'upstream_truncated']);
    const whole = [{ ...message('x'), status: 'completed' }];
    expect(outcome(delta('x'), completed('x', { incomplete_details: null, output: whole }))).toEqual([
      'x',
      'stop',
    ]);
  });

  test.each<[string, string[], string, string]>([
    [
      'without event names',
      [delta('x'), completed('x')].map((text) => text.replace(/^event: .*\n/, '')),
      'x',
      'stop',
    ],
    [
      'without types in its data',
      ['event: response.output_text.delta\ndata: {"delta":"x"}\n\n', completed('x')],
      'x',
      'stop',
    ],
    ['with only deltas and an end', [delta('x'), completed('x')], 'x', 'stop'],
    ['whose last event repeats no text', [delta('x'), completed('', { output: [] })], 'x', 'stop'],
    [
      'whose last event has no status',
      [delta('x'), event('response.completed', { response: { usage } })],
      'x',
      'stop',
    ],
    ['whose last event has no response', [delta('x'), event('response.completed')], 'x', 'stop'],
    ['without deltas', [completed('all at once')], 'all at once', 'stop'],
    [
      'with whole parts only',
      [
        event('response.output_text.done', { text: 'one ' }),
        event('response.output_text.done', { text: 'two' }),
        completed('', { output: [] }),
      ],
      'one two',
      'stop',
    ],
    [
      'whose part lost its last delta',
      [delta('one '), event('response.output_text.done', { text: 'one two' }), completed('one two')],
      'one two',
      'stop',
    ],
    [
      'whose part lost its first delta',
      [delta('two'), event('response.output_text.done', { text: 'one two' }), completed('one two')],
      'two',
      'upstream_invalid',
    ],
    ['that lost its last deltas', [delta('one '), completed('one two')], 'one two', 'stop'],
    ['that lost its first delta', [delta('two'), completed('one two')], 'two', 'upstream_invalid'],
    [
      'with a refusal',
      [
        event('response.refusal.delta', { delta: 'no' }),
        completed('', { output: [{ type: 'message', content: [{ type: 'refusal', refusal: 'no' }] }] }),
      ],
      'no',
      'stop',
    ],
    ['that ends in [DONE]', [delta('x'), completed('x'), 'data: [DONE]\n\n'], 'x', 'stop'],
    [
      'with comments and pings',
      [': keepalive\n\n', 'event: ping\ndata: {}\n\n', delta('x'), completed('x')],
      'x',
      'stop',
    ],
    ['cut off by its cap', [delta('x'), incomplete({ reason: 'max_output_tokens' })], 'x', 'length'],
    ['cut off by a filter', [delta('x'), incomplete({ reason: 'content_filter' })], 'x', 'content_filter'],
    [
      'with a search by the provider',
      [event('response.output_item.done', { item: { type: 'web_search_call' } }), delta('x'), completed('x')],
      'x',
      'stop',
    ],
  ])('%s yields its text and its ending', (_name, frames, text, ending) => {
    expect(outcome(...frames)).toEqual([text, ending]);
  });

  test.each<[string, string[], string, string]>([
    ['nothing after its deltas', [delta('x')], 'x', 'upstream_truncated'],
    ['[DONE] and no last event', [delta('x'), 'data: [DONE]\n\n'], 'x', 'upstream_truncated'],
    ['no events', [], '', 'upstream_truncated'],
    ['an incomplete answer without a reason', [delta('x'), incomplete(null)], 'x', 'upstream_error'],
    [
      'an incomplete answer for an unknown reason',
      [delta('x'), incomplete({ reason: 'steered' })],
      'x',
      'upstream_error',
    ],
    [
      'response.failed',
      [
        delta('x'),
        event('response.failed', { response: { status: 'failed', error: { code: 'server_error' } } }),
      ],
      'x',
      'upstream_error',
    ],
    [
      'response.failed without an error',
      [delta('x'), event('response.failed', { response: { status: 'failed' } })],
      'x',
      'upstream_error',
    ],
    [
      'response.cancelled',
      [delta('x'), event('response.cancelled', { response: { status: 'cancelled' } })],
      'x',
      'upstream_error',
    ],
    [
      'response.completed with another status',
      [delta('x'), event('response.completed', { response: { status: 'failed' } })],
      'x',
      'upstream_error',
    ],
    [
      'response.completed with an error',
      [delta('x'), completed('x', { error: { code: 'server_error' } })],
      'x',
      'upstream_error',
    ],
    [
      'a flat error',
      [delta('x'), event('error', { code: 'server_error', message: 'm' })],
      'x',
      'upstream_error',
    ],
    [
      'a nested error',
      [delta('x'), event('error', { error: { code: 'rate_limit_exceeded' } })],
      'x',
      'upstream_rate_limited',
    ],
    [
      'an error without a name',
      [delta('x'), 'data: {"error":{"type":"overloaded_error"}}\n\n'],
      'x',
      'overloaded',
    ],
    ['an error event that is not JSON', [delta('x'), 'event: error\ndata: boom\n\n'], 'x', 'upstream_error'],
    [
      'a function call',
      [event('response.output_item.added', { item: { type: 'function_call', name: 'f' } }), completed('')],
      '',
      'upstream_invalid',
    ],
    [
      'a function call that only the last event shows',
      [completed('', { output: [{ type: 'function_call' }] })],
      '',
      'upstream_invalid',
    ],
    [
      'an item of an unknown type',
      [event('response.output_item.done', { item: { type: 'hologram' } })],
      '',
      'upstream_invalid',
    ],
    ['broken JSON', [delta('x'), 'data: {"type\n\n'], 'x', 'upstream_invalid'],
  ])('with %s fails and keeps its text', (_name, frames, text, ending) => {
    expect(outcome(...frames)).toEqual([text, ending]);
  });

  test('that fails after its usage report keeps the usage', () => {
    const failed = event('response.failed', { response: { status: 'failed', error: { code: 'x' }, usage } });
    expect(read(delta('x'), failed)).toMatchObject({ ending: 'upstream_error', usage: { totalTokens: 18 } });
  });

  test('counts thoughts and cached tokens as details of their totals', () => {
    const detailed = {
      ...usage,
      input_tokens_details: { cached_tokens: 5 },
      output_tokens_details: { reasoning_tokens: 3 },
    };
    expect(read(completed('x', { usage: detailed })).usage).toMatchObject({
      cachedInputTokens: 5,
      cacheWriteTokens: 0,
      reasoningTokens: 3,
    });
  });
});

describe('a whole Responses answer', () => {
  const whole = (body: object) => {
    const { text, ending } = summarize(readUpstream(bodyReader(responsesDialect), [JSON.stringify(body)]));
    return [text, ending];
  };

  test.each<[string, object, string, string]>([
    [
      'a text',
      { status: 'completed', output: [{ type: 'reasoning' }, message('a'), message('b')] },
      'ab',
      'stop',
    ],
    ['an empty message', { status: 'completed', output: [message('')] }, '', 'stop'],
    ['nothing in it', { status: 'completed', output: [] }, '', 'upstream_invalid'],
    [
      'a text that was cut off',
      { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, output: [message('a')] },
      'a',
      'length',
    ],
    ['a failure', { status: 'failed', error: { code: 'server_error' }, output: [] }, '', 'upstream_error'],
    ['an error alone', { error: { message: 'x' } }, '', 'upstream_error'],
    [
      'an error given as text',
      { status: 'completed', error: 'x', output: [message('a')] },
      '',
      'upstream_error',
    ],
    ['an empty error', { status: 'completed', error: { code: 0 }, output: [message('a')] }, 'a', 'stop'],
    ['a tool call', { status: 'completed', output: [{ type: 'function_call' }] }, '', 'upstream_invalid'],
    ['no status', { output: [message('a')] }, 'a', 'upstream_invalid'],
    ['the answer of another protocol', { choices: [] }, '', 'upstream_invalid'],
    ['an unfinished answer', { status: 'in_progress', output: [] }, '', 'upstream_invalid'],
    ['a status that is unknown', { status: 'waiting', output: [] }, '', 'upstream_invalid'],
    ['a status of a blocked kind', { status: 'moderated', output: [] }, '', 'content_filter'],
  ])('with %s yields its text and its ending', (_name, body, text, ending) => {
    expect(whole(body)).toEqual([text, ending]);
  });
});

describe('a request in the Responses dialect', () => {
  const request = {
    model: 'ours',
    turns: [
      { role: 'system', text: 's' },
      { role: 'user', text: 'u' },
      { role: 'assistant', text: 'a' },
    ],
    stream: true,
    includeUsage: false,
    shownCharge: { usageCost: false, chargeComment: false },
    maxOutputTokens: null,
    stop: [],
    promptCacheKey: null,
    responses: null,
    stripped: [],
  } as const;

  test('carries the whole history, asks for no storage, and has no cap if the client gave none', () => {
    const { path, body } = responsesDialect.writeRequest(request, 'theirs', usualQuirks);
    expect(path).toBe('/responses');
    expect(JSON.parse(body)).toEqual({
      model: 'theirs',
      input: [
        { type: 'message', role: 'system', content: 's' },
        { type: 'message', role: 'user', content: 'u' },
        { type: 'message', role: 'assistant', content: 'a' },
      ],
      stream: true,
      store: false,
    });
  });

  test('carries the key as a bearer token', () => {
    expect(responsesDialect.auth).toEqual({ header: 'authorization', prefix: 'Bearer ' });
  });

  test.each([
    [1, 16],
    [16, 16],
    [500, 500],
  ])('turns a cap of %i into %i, since OpenAI refuses caps below 16', (cap, sent) => {
    const { body } = responsesDialect.writeRequest({ ...request, maxOutputTokens: cap }, 'm', usualQuirks);
    expect(JSON.parse(body)).toMatchObject({ max_output_tokens: sent });
  });
});

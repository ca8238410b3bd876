import { describe, expect, test } from 'vitest';
import type { TextRequest } from '../../../src/protocol/text.ts';
import { anthropicDialect } from '../../../src/protocol/upstream/anthropic.ts';
import { bodyReader, readUpstream, streamReader, summarize } from '../../support/read-upstream.ts';
import { usualQuirks } from '../../support/model-source.ts';
import { plainUsage } from '../../support/answers.ts';

const event = (type: string, fields: object = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const start = (usage: object = { input_tokens: 11, output_tokens: 1 }) =>
  event('message_start', { message: { role: 'assistant', content: [], stop_reason: null, usage } });
const open = (block: object) => event('content_block_start', { index: 0, content_block: block });
const delta = (fields: object) => event('content_block_delta', { index: 0, delta: fields });
const say = (text: unknown) => delta({ type: 'text_delta', text });
const close = event('content_block_stop', { index: 0 });
const stopped = (reason: unknown, usage: object = { output_tokens: 7 }) =>
  event('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage });
const stop = event('message_stop');
const ping = event('ping');
const text = { type: 'text', text: '' };

const ordinary = [
  start(),
  open(text),
  ping,
  say('one '),
  say('zwei: é€😀'),
  close,
  stopped('end_turn'),
  stop,
];
const ordinaryText = 'one zwei: é€😀';
const usage = plainUsage;

const read = (...frames: (string | Uint8Array)[]) =>
  summarize(readUpstream(streamReader(anthropicDialect), frames));
const outcome = (...frames: string[]) => {
  const { text: said, ending } = read(...frames);
  return [said, ending];
};

describe('a Messages stream', () => {
  test('yields each text as it arrives, then its ending with the raw reason and the usage', () => {
    expect(readUpstream(streamReader(anthropicDialect), ordinary)).toEqual([
      { type: 'delta', text: 'one ' },
      { type: 'delta', text: 'zwei: é€😀' },
      { type: 'finish', reason: 'stop', rawReason: 'end_turn', usage },
    ]);
  });

  test('ends with its last event, before the body ends', () => {
    const reader = streamReader(anthropicDialect);
    const { ending } = reader.push(new TextEncoder().encode(ordinary.join('')));
    expect(ending).toMatchObject({ kind: 'finished', reason: 'stop' });
    expect([...reader.answer.violations]).toEqual([]);
  });

  test('reads the same wherever its bytes are split', () => {
    const bytes = Buffer.from(ordinary.join('').replaceAll('\n\n', '\r\n\r\n'));
    const expected = { text: ordinaryText, ending: 'stop', usage };
    for (let cut = 0; cut <= bytes.length; cut++)
      expect(read(bytes.subarray(0, cut), bytes.subarray(cut))).toEqual(expected);
  });

  test.each<[string, string[], string, string]>([
    ['without event names', ordinary.map((frame) => frame.replace(/^event: .*\n/, '')), ordinaryText, 'stop'],
    [
      'without types in its data',
      ordinary.map((frame) => frame.replace(/"type":"[a-z_]+",?/, '')),
      ordinaryText,
      'stop',
    ],
    ['with only deltas and an end', [say('x'), stopped('end_turn'), stop], 'x', 'stop'],
    ['that ends in [DONE]', [...ordinary, 'event: data\ndata: [DONE]\n\n'], ordinaryText, 'stop'],
    [
      'whose block opens with its text',
      [open({ type: 'text', text: 'x' }), stopped('end_turn'), stop],
      'x',
      'stop',
    ],
    ['whose block opens without text', [open({ type: 'text' }), stopped('end_turn'), stop], '', 'stop'],
    [
      'with thoughts before its text',
      [
        open({ type: 'thinking', thinking: '', signature: '' }),
        delta({ type: 'thinking_delta', thinking: 'hm' }),
        delta({ type: 'signature_delta', signature: 'abc' }),
        open({ type: 'redacted_thinking', data: 'abc' }),
        open(text),
        say('x'),
        stopped('end_turn'),
        stop,
      ],
      'x',
      'stop',
    ],
    [
      'with citations',
      [
        open(text),
        delta({ type: 'citations_delta', citation: { cited_text: 'c' } }),
        say('x'),
        stopped('end_turn'),
        stop,
      ],
      'x',
      'stop',
    ],
    [
      'with a search by the provider',
      [
        open({ type: 'server_tool_use', name: 'web_search', input: {} }),
        delta({ type: 'input_json_delta', partial_json: '{"query"' }),
        open({ type: 'web_search_tool_result', content: [{ type: 'web_search_result', title: 't' }] }),
        open(text),
        say('x'),
        stopped('end_turn'),
        stop,
      ],
      'x',
      'stop',
    ],
    ['with events of unknown types', [event('news'), say('x'), stopped('end_turn'), stop], 'x', 'stop'],
    ['with a null error', [event('news', { error: null }), say('x'), stopped('end_turn'), stop], 'x', 'stop'],
    ['with an empty error', [event('news', { error: {} }), say('x'), stopped('end_turn'), stop], 'x', 'stop'],
    [
      'with a heartbeat',
      ['event: heartbeat\ndata: ok\n\n', say('x'), stopped('end_turn'), stop],
      'x',
      'stop',
    ],
    ['with text after its reason', [say('a'), stopped('end_turn'), say('b'), stop], 'ab', 'stop'],
    [
      'with text after its reason and no end',
      [say('a'), stopped('end_turn'), say('b')],
      'ab',
      'upstream_truncated',
    ],
  ])('%s yields its text and its ending', (_name, frames, said, ending) => {
    expect(outcome(...frames)).toEqual([said, ending]);
  });
});

describe('a Messages stream that is cut off', () => {
  const wholeFrom = ordinary.length - 1;

  test.each(ordinary.slice(0, wholeFrom).map((_frame, count) => count))(
    'after %i events is truncated, never finished, and its initial usage does not count later text',
    (count) => {
      const cut = read(...ordinary.slice(0, count));
      expect(cut.ending).toBe('upstream_truncated');
      const beginning = expect.objectContaining({ inputTokens: 11, outputTokens: 1 });
      expect(cut.usage).toEqual(count === 0 || cut.text !== '' ? null : beginning);
    },
  );

  test('before its last event is finished if its reason has arrived, and is noted as a violation', () => {
    const reader = streamReader(anthropicDialect);
    const events = readUpstream(reader, ordinary.slice(0, wholeFrom));
    expect(summarize(events)).toEqual({ text: ordinaryText, ending: 'stop', usage });
    expect([...reader.answer.violations]).toEqual(['missing_done']);
  });

  test('at any byte before the end of its reason is not finished', () => {
    const bytes = Buffer.from(ordinary.join(''));
    const reasonEnd = bytes.indexOf('"output_tokens":7}}') + '"output_tokens":7}}'.length;
    for (let length = 0; length < reasonEnd; length++)
      expect(read(bytes.subarray(0, length)).ending).toMatch(/^upstream_(truncated|invalid)$/);
    expect(read(bytes.subarray(0, reasonEnd)).ending).toBe('stop');
  });

  test('and ends with message_stop but without a reason is still truncated', () => {
    expect(outcome(start(), say('x'), stop)).toEqual(['x', 'upstream_truncated']);
    expect(outcome(start(), say('x'), stopped(null), stop)).toEqual(['x', 'upstream_truncated']);
  });
});

describe('a Messages stream of an upstream whose finish reason is optional', () => {
  test('is finished with message_stop, and truncated without it', () => {
    const ended = (...frames: string[]) =>
      summarize(readUpstream(streamReader(anthropicDialect, 'optional'), frames)).ending;
    expect(ended(start(), say('x'), stop)).toBe('stop');
    expect(ended(start(), say('x'))).toBe('upstream_truncated');
  });
});

describe('the stop reason of a message', () => {
  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'content_filter'],
    ['tool_use', 'upstream_invalid'],
    ['pause_turn', 'upstream_error'],
    ['novelty', 'upstream_error'],
  ])('%s ends the answer as %s, streamed and whole', (reason, ending) => {
    expect(outcome(start(), say('x'), stopped(reason), stop)).toEqual(['x', ending]);
    expect(whole({ content: [{ type: 'text', text: 'x' }], stop_reason: reason })).toEqual(['x', ending]);
  });
});

describe('a Messages stream that fails', () => {
  test.each<[string, string, string]>([
    ['an overload', event('error', { error: { type: 'overloaded_error' } }), 'overloaded'],
    ['a rate limit', event('error', { error: { type: 'rate_limit_error' } }), 'upstream_rate_limited'],
    ['a wrong key', event('error', { error: { type: 'authentication_error' } }), 'upstream_auth'],
    ['a key without permission', event('error', { error: { type: 'permission_error' } }), 'upstream_auth'],
    ['a timeout', event('error', { error: { type: 'timeout_error' } }), 'upstream_timeout'],
    ['an internal error', event('error', { error: { type: 'api_error' } }), 'upstream_error'],
    ['an error without a name', 'data: {"error":{"type":"overloaded_error"}}\n\n', 'overloaded'],
    [
      'an error without a type',
      'event: error\ndata: {"error":{"type":"overloaded_error"}}\n\n',
      'overloaded',
    ],
    ['an error that is not JSON', 'event: error\ndata: boom\n\n', 'upstream_error'],
    ['a tool call', open({ type: 'tool_use', name: 'f', input: {} }), 'upstream_invalid'],
    ['arguments without a tool', delta({ type: 'input_json_delta', partial_json: '{' }), 'upstream_invalid'],
    ['a block of an unknown type', open({ type: 'hologram' }), 'upstream_invalid'],
    ['a block without a type', open({}), 'upstream_invalid'],
    ['a number as text', say(7), 'upstream_invalid'],
    ['broken JSON', 'data: {"type\n\n', 'upstream_invalid'],
  ])('by %s ends at once and ignores what follows', (_name, fault, code) => {
    expect(outcome(start(), open(text), say('a'), fault, say('b'), stopped('end_turn'), stop)).toEqual([
      'a',
      code,
    ]);
    expect(outcome(start(), open(text), say('a'), stopped('end_turn'), fault, stop)).toEqual(['a', code]);
  });

  test('names a tool call as its fault', () => {
    const events = readUpstream(streamReader(anthropicDialect), [start(), open({ type: 'tool_use' })]);
    expect(JSON.stringify(events)).toContain('a tool call');
  });

  test('quotes nothing of the upstream', () => {
    const message = 'at http://10.1.2.3 with sk-secret';
    const events = readUpstream(streamReader(anthropicDialect), [
      event('error', { error: { type: 'api_error', message } }),
    ]);
    expect(JSON.stringify(events)).not.toMatch(/10\.1\.2\.3|sk-secret/);
  });

  test('keeps the usage reported before the failure', () => {
    expect(read(start(), say('a'), stopped('end_turn'), event('error')).usage).toEqual(usage);
  });
});

describe('the usage of a message', () => {
  const usageOf = (first: object, last: object) => read(start(first), stopped('end_turn', last), stop).usage;

  test('counts cache reads and cache writes as input', () => {
    const first = { input_tokens: 50, cache_read_input_tokens: 200, cache_creation_input_tokens: 100 };
    expect(usageOf(first, { output_tokens: 30 })).toEqual({
      inputTokens: 350,
      cachedInputTokens: 200,
      cacheWriteTokens: 100,
      outputTokens: 30,
      reasoningTokens: 0,
      totalTokens: 380,
    });
  });

  test('is the last one reported, and null does not replace it', () => {
    const first = { input_tokens: 0, cache_read_input_tokens: 5, output_tokens: 1 };
    const last = { input_tokens: 32, cache_read_input_tokens: null, output_tokens: 16 };
    expect(usageOf(first, last)).toMatchObject({
      inputTokens: 37,
      cachedInputTokens: 5,
      cacheWriteTokens: 0,
      outputTokens: 16,
    });
  });

  test('is the final count of input and output when the first one was an estimate', () => {
    const first = { input_tokens: 60, cache_read_input_tokens: 5, output_tokens: 1 };
    const last = { input_tokens: 40, cache_read_input_tokens: 5, output_tokens: 16 };
    expect(usageOf(first, last)).toMatchObject({ inputTokens: 45, cachedInputTokens: 5, outputTokens: 16 });
    expect(usageOf({ ...first, output_tokens: 17 }, last)).toBeNull();
  });

  test('includes its thoughts in the output', () => {
    const last = { output_tokens: 93, output_tokens_details: { thinking_tokens: 53 } };
    expect(usageOf({ input_tokens: 50 }, last)).toMatchObject({ outputTokens: 93, reasoningTokens: 53 });
  });

  test('adds up cache writes that are reported per retention time', () => {
    const parts = { ephemeral_5m_input_tokens: 30, ephemeral_1h_input_tokens: 70 };
    const first = { input_tokens: 50, cache_creation: parts };
    expect(usageOf(first, { output_tokens: 30 })).toMatchObject({ inputTokens: 150, cacheWriteTokens: 100 });
    const both = { ...first, cache_creation_input_tokens: 100 };
    expect(usageOf(both, { output_tokens: 30 })).toMatchObject({ inputTokens: 150, cacheWriteTokens: 100 });
  });

  test.each([{}, { output_tokens: '7' }])(
    'is missing when only the first event counts output (%j)',
    (last) => {
      const first = start({ input_tokens: 11, output_tokens: 1 });
      expect(read(first, say('a'), stopped('end_turn', last), stop)).toMatchObject({
        text: 'a',
        usage: null,
      });
    },
  );
});

const whole = (body: object) => {
  const { text: said, ending } = summarize(
    readUpstream(bodyReader(anthropicDialect), [JSON.stringify(body)]),
  );
  return [said, ending];
};

describe('a whole message', () => {
  const say1 = { type: 'text', text: 'a' };

  test('yields the same events as its stream', () => {
    const body = {
      content: [{ type: 'text', text: ordinaryText }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 11, output_tokens: 7 },
    };
    expect(readUpstream(bodyReader(anthropicDialect), [JSON.stringify(body)])).toEqual([
      { type: 'delta', text: ordinaryText },
      { type: 'finish', reason: 'stop', rawReason: 'end_turn', usage },
    ]);
  });

  test.each<[string, object, string, string]>([
    ['two texts', { content: [say1, { type: 'text', text: 'b' }], stop_reason: 'end_turn' }, 'ab', 'stop'],
    ['no text', { content: [], stop_reason: 'end_turn' }, '', 'stop'],
    [
      'thoughts and the provider’s own tools',
      {
        content: [
          { type: 'thinking', thinking: 'hm', signature: 's' },
          { type: 'server_tool_use', input: {} },
          { type: 'bash_code_execution_tool_result', content: { stdout: '5' } },
          say1,
        ],
        stop_reason: 'end_turn',
      },
      'a',
      'stop',
    ],
    [
      'a tool call',
      { content: [say1, { type: 'tool_use' }], stop_reason: 'tool_use' },
      'a',
      'upstream_invalid',
    ],
    [
      'a block that is not an object',
      { content: [say1, 7], stop_reason: 'end_turn' },
      'a',
      'upstream_invalid',
    ],
    ['no reason', { content: [say1], stop_reason: null }, 'a', 'upstream_truncated'],
    ['an error', { type: 'error', error: { type: 'overloaded_error' } }, '', 'overloaded'],
    ['an error given as text', { error: 'boom' }, '', 'upstream_error'],
    ['an empty error', { content: [say1], stop_reason: 'end_turn', error: { code: 0 } }, 'a', 'stop'],
    ['the answer of another protocol', { choices: [] }, '', 'upstream_invalid'],
  ])('with %s yields its text and its ending', (_name, body, said, ending) => {
    expect(whole(body)).toEqual([said, ending]);
  });
});

describe('a request in the Messages dialect', () => {
  const request: TextRequest = {
    model: 'ours',
    turns: [
      { role: 'system', text: 's' },
      { role: 'user', text: 'u ' },
    ],
    stream: true,
    includeUsage: false,
    shownCharge: { usageCost: false, chargeComment: false },
    maxOutputTokens: null,
    stop: [],
    promptCacheKey: null,
    responses: null,
    stripped: [],
  };
  const write = (changes: Partial<TextRequest>) => {
    const { path, body } = anthropicDialect.writeRequest({ ...request, ...changes }, 'theirs', usualQuirks);
    return { path, body: JSON.parse(body) as unknown };
  };

  test('has a separate system prompt, unchanged turns, and a default cap if the client gave none', () => {
    expect(write({})).toEqual({
      path: '/messages',
      body: {
        model: 'theirs',
        max_tokens: 4_096,
        system: 's',
        messages: [{ role: 'user', content: 'u ' }],
        stream: true,
      },
    });
  });

  test('has the client’s cap if there is one, and no system prompt if it is empty', () => {
    expect(write({ turns: [{ role: 'user', text: 'u' }], maxOutputTokens: 9, stream: false }).body).toEqual({
      model: 'theirs',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'u' }],
      stream: false,
    });
  });

  test('trims the end of a last assistant turn, and no other turn', () => {
    const turns = [
      { role: 'user', text: 'u\n' },
      { role: 'assistant', text: 'a\n' },
      { role: 'user', text: 'v\n' },
      { role: 'assistant', text: 'b: \n' },
    ] as const;
    expect(write({ turns }).body).toMatchObject({
      messages: [
        { content: 'u\n' },
        { content: 'a\n' },
        { content: 'v\n' },
        { role: 'assistant', content: 'b:' },
      ],
    });
  });

  test('carries the key and the API version in headers', () => {
    expect(anthropicDialect.auth).toEqual({ header: 'x-api-key', prefix: '' });
    expect(anthropicDialect.headers).toEqual({ 'anthropic-version': '2023-06-01' });
  });
});

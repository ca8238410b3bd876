import { describe, expect, test } from 'vitest';
import { readChatRequest } from '../../../src/protocol/chat/read-request.ts';
import { defaultCompatibility } from '../../../src/protocol/contract/compatibility.ts';
import { isRefusal } from '../../../src/shared/errors.ts';

const user = { role: 'user', content: 'hi' };
const read = (more: Record<string, unknown>) =>
  readChatRequest({ model: 'm', messages: [user], ...more }, defaultCompatibility);

/** The texts read from messages, or the code and the path of the fault. */
function readMessages(...messages: unknown[]): unknown {
  const request = readChatRequest({ model: 'm', messages }, defaultCompatibility);
  if (isRefusal(request)) return `${request.code} ${request.param}`;
  return request.turns.map(({ role, text }) => `${role}: ${text}`);
}

describe('a chat request', () => {
  test('needs only a model and a message', () => {
    expect(read({})).toEqual({
      model: 'm',
      turns: [{ role: 'user', text: 'hi' }],
      stream: false,
      includeUsage: false,
      shownCharge: { usageCost: false, chargeComment: false },
      maxOutputTokens: null,
      stop: [],
      promptCacheKey: null,
      responses: null,
      stripped: [],
    });
  });

  test.each([
    [{ max_tokens: 5 }, 5],
    [{ max_completion_tokens: 6 }, 6],
    [{ max_tokens: 5, max_completion_tokens: 6 }, 6],
    [{ max_tokens: 5, max_completion_tokens: null }, 5],
    [{ max_tokens: null }, null],
    [{ max_tokens: -1 }, null],
    [{ max_tokens: 5, max_completion_tokens: -1 }, null],
  ])('with %j caps the output at %j', (more, cap) => {
    expect(read(more)).toMatchObject({ maxOutputTokens: cap });
  });

  test.each([
    [{ stream: true }, true, false],
    [{ stream: false }, false, false],
    [{ stream_options: { include_usage: true } }, false, true],
    [{ stream: false, stream_options: {} }, false, false],
    [{ stream: null }, false, false],
    [{ stream: true, stream_options: null }, true, false],
    [{ stream: true, stream_options: {} }, true, false],
    [{ stream: true, stream_options: { include_usage: true } }, true, true],
    [{ stream: true, stream_options: { include_usage: false } }, true, false],
    [{ stream: true, stream_options: { include_usage: null } }, true, false],
    [{ stream: true, stream_options: { include_usage: true, include_obfuscation: false } }, true, true],
  ])('with %j has stream %s and usage %s', (more, stream, includeUsage) => {
    expect(read(more)).toMatchObject({ stream, includeUsage });
  });

  test.each([
    [{ max_tokens: 0 }, 'integer_below_min_value', 'max_tokens'],
    [{ max_tokens: -2 }, 'integer_below_min_value', 'max_tokens'],
    [{ stop: ['a', 'b', 'c', 'd', 'e'] }, 'invalid_value', 'stop'],
    [{ stop: ['', '', '', '', ''] }, 'invalid_value', 'stop'],
    [{ stop: ['a', 7] }, 'invalid_type', 'stop[1]'],
    [{ stop: ['a', null] }, 'invalid_type', 'stop[1]'],
    [{ stop: { a: 'b' } }, 'invalid_type', 'stop'],
    [{ stop: 'x'.repeat(1_025) }, 'invalid_value', 'stop'],
    [{ stop: ['a', 'x'.repeat(1_025)] }, 'invalid_value', 'stop[1]'],
    [
      { stream: true, stream_options: { include_usage: 'yes' } },
      'invalid_type',
      'stream_options.include_usage',
    ],
    [{ messages: [] }, 'empty_array', 'messages'],
  ])('with %j is refused: %s %s', (more, code, param) => {
    expect(read(more)).toMatchObject({ code, param });
  });

  test.each([
    [undefined, []],
    [null, []],
    ['', []],
    [[], []],
    [['', ''], []],
    ['\n', ['\n']],
    [
      ['a', '', 'b', 'a'],
      ['a', 'b'],
    ],
    [
      ['a', 'b', 'c', 'x'.repeat(1_024)],
      ['a', 'b', 'c', 'x'.repeat(1_024)],
    ],
  ])('with the stop sequences %j has each of them once: %j', (stop, sequences) => {
    expect(read({ stop })).toMatchObject({ stop: sequences, stripped: [] });
  });

  test('takes null for any field as if it were absent, also for one that is in no table', () => {
    const more = { foo: null, stream_options: { foo: null }, stream: true };
    expect(read(more)).toEqual(read({ stream: true, stream_options: {} }));
    expect(read({ foo: 0 })).toMatchObject({ code: 'unknown_parameter', param: 'foo' });
  });

  test('names stream_options as stripped without a stream', () => {
    expect(read({ stream_options: { include_usage: true } })).toMatchObject({ stripped: ['stream_options'] });
    expect(read({ stream_options: null })).toMatchObject({ stripped: [] });
  });

  test('lists its stripped parameters', () => {
    expect(read({ temperature: 1, tools: [] })).toMatchObject({ stripped: ['temperature', 'tools'] });
  });
});

describe('a chat message', () => {
  test('keeps its position and its exact text, and gets its neutral role', () => {
    expect(
      readMessages(
        { role: 'developer', content: 'a\n ' },
        { role: 'system', content: '' },
        { role: 'user', content: '\u0000é😀' },
        { role: 'assistant', content: 'b' },
      ),
    ).toEqual(['system: a\n ', 'system: ', 'user: \u0000é😀', 'assistant: b']);
  });

  test.each<[string, unknown, unknown]>([
    ['one text part', [{ type: 'text', text: 'a' }], ['user: a']],
    [
      'several parts, joined without a separator',
      [
        { type: 'text', text: 'a ' },
        { type: 'text', text: '' },
        { type: 'text', text: 'b', cache_control: { type: 'ephemeral' } },
      ],
      ['user: a b'],
    ],
    ['a refusal part', [{ type: 'refusal', refusal: 'no' }], ['user: no']],
    ['no parts', [], 'empty_array messages[0].content'],
    ['null', null, 'invalid_type messages[0].content'],
    ['no value', undefined, 'missing_required_parameter messages[0].content'],
    ['a number', 7, 'invalid_type messages[0].content'],
    ['an object', { type: 'text', text: 'a' }, 'invalid_type messages[0].content'],
    ['a string as a part', ['a'], 'invalid_type messages[0].content[0]'],
    ['a part without a type', [{ text: 'a' }], 'missing_required_parameter messages[0].content[0].type'],
    ['a number as a type', [{ type: 7 }], 'invalid_type messages[0].content[0].type'],
    ['a part without text', [{ type: 'text' }], 'missing_required_parameter messages[0].content[0].text'],
    ['a part with a null text', [{ type: 'text', text: null }], 'invalid_type messages[0].content[0].text'],
    [
      'a picture after text',
      [
        { type: 'text', text: 'a' },
        { type: 'image_url', image_url: { url: 'data:,' } },
      ],
      'unsupported_value messages[0].content[1].type',
    ],
    ['sound', [{ type: 'input_audio' }], 'unsupported_value messages[0].content[0].type'],
    ['a file', [{ type: 'file' }], 'unsupported_value messages[0].content[0].type'],
    [
      'a part of the Responses protocol',
      [{ type: 'input_text', text: 'a' }],
      'unsupported_value messages[0].content[0].type',
    ],
    [
      'a type from an object’s prototype',
      [{ type: 'constructor' }],
      'unsupported_value messages[0].content[0].type',
    ],
  ])('with %s as its content is read as %j', (_name, content, expected) => {
    expect(readMessages({ role: 'user', content })).toEqual(expected);
  });

  test.each<[unknown, string]>([
    [undefined, 'missing_required_parameter messages[1].role'],
    [null, 'invalid_type messages[1].role'],
    [7, 'invalid_type messages[1].role'],
    ['tool', 'unsupported_value messages[1].role'],
    ['function', 'unsupported_value messages[1].role'],
    ['User', 'invalid_value messages[1].role'],
    ['wizard', 'invalid_value messages[1].role'],
    ['constructor', 'invalid_value messages[1].role'],
    ['__proto__', 'invalid_value messages[1].role'],
  ])('of role %j is refused: %s', (role, expected) => {
    expect(readMessages(user, { role, content: 'x' })).toBe(expected);
  });

  test.each([null, 'x', 7, []])('is refused if it is %j', (message) => {
    expect(readMessages(user, message)).toBe('invalid_type messages[1]');
  });

  test('that an SDK replays unchanged is read as text', () => {
    const replayed = {
      role: 'assistant',
      content: 'x',
      refusal: null,
      annotations: [],
      audio: null,
      function_call: null,
      tool_calls: [],
      reasoning_content: 'hm',
      id: 'x',
      name: 'bob',
    };
    expect(readMessages(replayed)).toEqual(['assistant: x']);
  });

  test('that was a refusal is read by its refusal text', () => {
    expect(readMessages({ role: 'assistant', content: null, refusal: 'no' })).toEqual(['assistant: no']);
    expect(readMessages({ role: 'assistant', refusal: 'no' })).toEqual(['assistant: no']);
    expect(readMessages({ role: 'assistant', content: 'x', refusal: 'no' })).toEqual(['assistant: x']);
  });

  test('of an assistant is an empty text if its content is null, as that of an empty answer', () => {
    expect(readMessages({ role: 'assistant', content: null })).toEqual(['assistant: ']);
    expect(readMessages({ role: 'assistant', content: null, refusal: null, tool_calls: [] })).toEqual([
      'assistant: ',
    ]);
    expect(readMessages({ role: 'assistant' })).toBe('missing_required_parameter messages[0].content');
    expect(readMessages({ role: 'system', content: null })).toBe('invalid_type messages[0].content');
  });

  test.each([
    ['tool_calls', [{ id: 'c' }]],
    ['function_call', { name: 'f' }],
    ['audio', { id: 'a' }],
    ['tool_call_id', 'c'],
  ])('with %s is refused at that path', (key, value) => {
    expect(readMessages({ role: 'assistant', content: 'x', [key]: value })).toMatch(
      new RegExp(`^unsupported_\\w+ messages\\[0\\]\\.${key}$`),
    );
  });
});

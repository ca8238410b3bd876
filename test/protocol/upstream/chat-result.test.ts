import { describe, expect, test } from 'vitest';
import type { TextRequest } from '../../../src/protocol/text.ts';
import { chatDialect } from '../../../src/protocol/upstream/chat.ts';
import { bodyReader, readUpstream, summarize } from '../../support/read-upstream.ts';
import { usualQuirks } from '../../support/model-source.ts';
import { eventsOf } from '../../support/order-law.ts';

const read = (...pieces: (string | Uint8Array)[]) => readUpstream(bodyReader(chatDialect), pieces);
const body = (message: unknown, reason: unknown = 'stop', extra: object = {}, error?: unknown) =>
  JSON.stringify({ choices: [{ index: 0, message, finish_reason: reason, error }], ...extra });

describe('a whole chat completion', () => {
  test('yields the same events as its stream', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
    expect(read(body({ role: 'assistant', content: 'é€😀' }, 'max_tokens', { usage }))).toEqual([
      { type: 'delta', text: 'é€😀' },
      {
        type: 'finish',
        reason: 'length',
        rawReason: 'max_tokens',
        usage: {
          inputTokens: 3,
          cachedInputTokens: 0,
          cacheWriteTokens: 0,
          outputTokens: 4,
          reasoningTokens: 0,
          totalTokens: 7,
        },
      },
    ]);
  });

  test('reads the same wherever its bytes are split, and after leading blank lines', () => {
    const bytes = Buffer.from(`\n\n\r\n${body({ content: 'é€😀' })}\n`);
    for (let cut = 0; cut <= bytes.length; cut++)
      expect(summarize(read(bytes.subarray(0, cut), bytes.subarray(cut)))).toMatchObject({
        text: 'é€😀',
        ending: 'stop',
      });
  });

  test.each<[string, string, string, string]>([
    ['no text', body({ content: '' }), '', 'stop'],
    ['null for its text', body({ content: null }), '', 'stop'],
    [
      'text parts',
      body({
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      }),
      'ab',
      'stop',
    ],
    ['a refusal', body({ content: null, refusal: 'no' }, 'content_filter'), 'no', 'content_filter'],
    ['no finish reason', body({ content: 'x' }, null), 'x', 'upstream_truncated'],
    ['no choices', '{}', '', 'upstream_invalid'],
    ['a tool call', body({ content: null, tool_calls: [{}] }, 'tool_calls'), '', 'upstream_invalid'],
    ['an error', body({ content: 'x' }, 'stop', { error: { message: 'x' } }), '', 'upstream_error'],
    [
      'an error in its choice',
      body({ content: 'x' }, 'stop', {}, { code: 429 }),
      '',
      'upstream_rate_limited',
    ],
    ['an error as its finish reason', body({ content: 'x' }, 'error'), '', 'upstream_error'],
    ['nothing', '', '', 'upstream_invalid'],
    ['half of its JSON', body({ content: 'x' }).slice(0, -1), '', 'upstream_truncated'],
    ['a web page', '<html>', '', 'upstream_invalid'],
    ['a list', '[]', '', 'upstream_invalid'],
    ['null', 'null', '', 'upstream_invalid'],
  ])('with %s yields its text and its ending', (_name, text, said, ending) => {
    expect(summarize(read(text))).toMatchObject({ text: said, ending });
  });

  test('of over 16 MiB is abandoned before its end', () => {
    const reader = bodyReader(chatDialect);
    const piece = Buffer.alloc(1_048_576, ' ');
    for (let count = 0; count < 16; count++) expect(eventsOf(reader.push(piece))).toEqual([]);
    expect(eventsOf(reader.push(Buffer.from(' ')))).toMatchObject([
      { type: 'failure', refusal: { code: 'upstream_invalid' } },
    ]);
    expect(eventsOf(reader.end())).toEqual([]);
  });
});

describe('a request in the Chat Completions dialect', () => {
  const request: TextRequest = {
    model: 'ours',
    turns: [
      { role: 'system', text: 'be brief' },
      { role: 'user', text: 'hi "there"' },
      { role: 'assistant', text: '' },
    ],
    stream: false,
    includeUsage: false,
    shownCharge: { usageCost: false, chargeComment: false },
    maxOutputTokens: null,
    stop: [],
    promptCacheKey: null,
    responses: null,
    stripped: ['temperature'],
  };
  const messages = [
    { role: 'system', content: 'be brief' },
    { role: 'user', content: 'hi "there"' },
    { role: 'assistant', content: '' },
  ];
  const write = (changes: Partial<TextRequest>) => {
    const { path, body: text } = chatDialect.writeRequest({ ...request, ...changes }, 'theirs', usualQuirks);
    return { path, body: JSON.parse(text) as unknown };
  };

  test('names the upstream’s model and carries nothing beyond the text', () => {
    expect(write({})).toEqual({
      path: '/chat/completions',
      body: { model: 'theirs', messages, stream: false },
    });
  });

  test('has the client’s stop sequences', () => {
    expect(write({ stop: ['\n', 'END'] }).body).toEqual({
      model: 'theirs',
      messages,
      stop: ['\n', 'END'],
      stream: false,
    });
  });

  test('carries the key as a bearer token and needs no other header', () => {
    expect(chatDialect.auth).toEqual({ header: 'authorization', prefix: 'Bearer ' });
    expect(chatDialect.headers).toBeUndefined();
  });

  test('does not ask for usage if the upstream sends it unasked and refuses the option', () => {
    const { body: text } = chatDialect.writeRequest({ ...request, stream: true }, 'theirs', {
      ...usualQuirks,
      streamUsage: 'given',
    });
    expect(JSON.parse(text)).toEqual({ model: 'theirs', messages, stream: true });
  });

  test('asks for usage on every stream, even if the client did not', () => {
    expect(write({ stream: true, maxOutputTokens: 9 }).body).toEqual({
      model: 'theirs',
      messages,
      max_tokens: 9,
      stream: true,
      stream_options: { include_usage: true },
    });
  });
});

import { describe, expect, test } from 'vitest';
import { anthropicDialect } from '../../../src/protocol/upstream/anthropic.ts';
import { chatDialect } from '../../../src/protocol/upstream/chat.ts';
import type { Dialect } from '../../../src/protocol/upstream/dialect.ts';
import { geminiDialect } from '../../../src/protocol/upstream/gemini.ts';
import { createReader } from '../../../src/protocol/upstream/read-answer.ts';
import { responsesDialect } from '../../../src/protocol/upstream/responses.ts';
import { readUpstream, summarize } from '../../support/read-upstream.ts';
import { plainSanitiser } from '../../support/sanitiser.ts';

type Rules = Partial<Parameters<typeof createReader>[1]>;

/** Reads an answer, and returns its text, its ending and its violations beside those of missing usage. */
function read(dialect: Dialect, text: string, rules: Rules = {}) {
  const reader = createReader(dialect, {
    contentType: text.startsWith('{') ? 'application/json' : 'text/event-stream',
    streamAsked: !text.startsWith('{'),
    finishReason: 'required',
    thoughtTag: null,
    sentTokens: 1_000,
    sanitise: plainSanitiser,
    isFast: true,
    ...rules,
  });
  const { text: said, ending } = summarize(readUpstream(reader, [text]));
  const violations = [...reader.answer.violations].filter((kind) => kind !== 'missing_usage');
  return [said, ending, ...violations];
}

const data = (frame: unknown): string => `data: ${JSON.stringify(frame)}\n\n`;
const done = 'data: [DONE]\n\n';
const chunk = (choice: object): string => data({ choices: [{ index: 0, ...choice }] });
const say = (content: unknown): string => chunk({ delta: { content } });
const stop = chunk({ delta: {}, finish_reason: 'stop' }) + done;
const whole = (choice: object): string => JSON.stringify({ choices: [{ index: 0, ...choice }] });
const optional = { finishReason: 'optional' } as const;

describe('an answer whose text is plainly there', () => {
  test.each<[string, Dialect, string]>([
    ['a chat content of output_text', chatDialect, say([{ type: 'output_text', text: 'a' }]) + stop],
    ['a chat content of parts without a type', chatDialect, say([{ text: 'a' }]) + stop],
    ['a chat content of strings', chatDialect, say(['a']) + stop],
    ['a chat content of one part', chatDialect, say({ type: 'text', text: 'a' }) + stop],
    ['a delta that is a string', chatDialect, chunk({ delta: 'a' }) + stop],
    ['a completion', chatDialect, whole({ text: 'a', finish_reason: 'stop' })],
    ['a stream of completions', chatDialect, chunk({ text: 'a' }) + stop],
    ['a message with a field text', chatDialect, whole({ message: { text: 'a' }, finish_reason: 'stop' })],
    ['a delta with a field text', chatDialect, chunk({ delta: { text: 'a' } }) + stop],
    ['a choice beside an empty delta', chatDialect, chunk({ delta: {}, text: 'a' }) + stop],
    [
      'a choice beside an empty message',
      chatDialect,
      whole({ message: { content: null }, text: 'a', finish_reason: 'stop' }),
    ],
    [
      'a message beside an empty delta',
      chatDialect,
      chunk({ delta: { content: '' }, message: { content: 'a' } }) + stop,
    ],
    ['a choice whose index is a text', chatDialect, chunk({ index: '0', delta: { content: 'a' } }) + stop],
    ['a whole answer with a delta', chatDialect, whole({ delta: { content: 'a' }, finish_reason: 'stop' })],
    [
      'a Responses delta that is an object',
      responsesDialect,
      data({ type: 'response.output_text.delta', delta: { text: 'a' } }) +
        data({ type: 'response.completed', response: { status: 'completed' } }),
    ],
    [
      'a Responses content that is a string',
      responsesDialect,
      JSON.stringify({ status: 'completed', output: [{ type: 'message', content: 'a' }] }),
    ],
    [
      'a Responses item that was never streamed',
      responsesDialect,
      data({
        type: 'response.output_item.done',
        item: { type: 'message', content: [{ type: 'output_text', text: 'a' }] },
      }) + data({ type: 'response.completed', response: { status: 'completed', output: [] } }),
    ],
    [
      'a Responses part that was never streamed, and its copies',
      responsesDialect,
      data({ type: 'response.content_part.done', part: { type: 'output_text', text: 'a' } }) +
        data({
          type: 'response.output_item.done',
          item: { type: 'message', content: [{ type: 'output_text', text: 'a' }] },
        }) +
        data({ type: 'response.completed', response: { status: 'completed', output: [] } }),
    ],
    [
      'the first event of Messages',
      anthropicDialect,
      data({ type: 'message_start', message: { content: [{ type: 'text', text: 'a' }] } }) +
        data({ type: 'message_delta', delta: { stop_reason: 'end_turn' } }) +
        data({ type: 'message_stop' }),
    ],
    ['a Messages content that is a string', anthropicDialect, '{"content":"a","stop_reason":"end_turn"}'],
    [
      'a Gemini content that is a string',
      geminiDialect,
      JSON.stringify({ candidates: [{ content: 'a', finishReason: 'STOP' }] }),
    ],
  ])('is read from %s', (_name, dialect, text) => {
    expect(read(dialect, text)).toEqual(['a', 'stop']);
  });
});

describe('an answer that was not understood', () => {
  const completed = (response: object): string => data({ type: 'response.completed', response });

  test.each<[string, Dialect, string]>([
    ['an image', chatDialect, say([{ type: 'image_url', image_url: { url: 'x' } }]) + stop],
    ['a choice without a message', chatDialect, whole({ finish_reason: 'stop' })],
    ['a stream whose choices have no delta', chatDialect, chunk({ finish_reason: 'stop' }) + done],
    ['a delta without a field for text', chatDialect, chunk({ delta: { role: 'assistant' } }) + stop],
    [
      'a message whose text is spoken',
      chatDialect,
      whole({ message: { content: null, audio: { transcript: 'a' } }, finish_reason: 'stop' }),
    ],
    [
      'events of Messages that are not known',
      anthropicDialect,
      data({ type: 'message_start', message: { content: [] } }) +
        data({ type: 'hologram', text: 'a' }) +
        data({ type: 'message_delta', delta: { stop_reason: 'end_turn' } }) +
        data({ type: 'message_stop' }),
    ],
    [
      'a Responses delta of a number',
      responsesDialect,
      data({ type: 'response.output_text.delta', delta: 7 }),
    ],
    [
      'a Responses delta without text',
      responsesDialect,
      data({ type: 'response.output_text.delta', delta: { html: 'a' } }),
    ],
    ['a completed response without output', responsesDialect, completed({ status: 'completed' })],
    ['a Messages block of a number', anthropicDialect, '{"content":[7],"stop_reason":"end_turn"}'],
    [
      'a candidate without content',
      geminiDialect,
      JSON.stringify({ candidates: [{ finishReason: 'STOP' }] }),
    ],
  ])('never ends as complete: %s', (_name, dialect, text) => {
    for (const rules of [{}, optional])
      expect(read(dialect, text, rules).slice(0, 2)).toEqual(['', 'upstream_invalid']);
  });

  test.each([
    ['nothing', done],
    ['no text', chunk({ delta: {} }) + done],
    ['thoughts alone', chunk({ delta: { reasoning_content: 'hm' } }) + done],
  ])('never ends as complete with finishReason: optional: %s', (_name, text) => {
    expect(read(chatDialect, text, optional)[1]).toBe('upstream_truncated');
  });

  test('is complete with finishReason: optional once text was read', () => {
    expect(read(chatDialect, say('a') + done, optional)).toEqual(['a', 'stop', 'missing_finish']);
  });

  test.each<[string, Dialect, string]>([
    ['a second choice', chatDialect, data({ choices: [{ index: 1, delta: { content: 'b' } }] })],
    ['an unknown event', responsesDialect, data({ type: 'response.hologram.delta', delta: 'b' })],
    ['an unknown event of Messages', anthropicDialect, data({ type: 'hologram' })],
    ['a second candidate', geminiDialect, data({ candidates: [{ index: 1, content: {} }] })],
  ])('counts a violation for what is skipped: %s', (_name, dialect, text) => {
    expect(read(dialect, text)).toContain('skipped_content');
  });
});

describe('a complete answer without text', () => {
  const reasoned = whole({ message: { content: null, reasoning_content: 'hm' }, finish_reason: 'stop' });

  test('counts a violation', () => {
    expect(read(chatDialect, reasoned)).toEqual(['', 'stop', 'empty_answer']);
  });

  test('that was blocked goes to no other provider, however its upstream is configured', () => {
    const blocked = whole({ message: { content: '' }, finish_reason: 'content_filter' });
    expect(read(chatDialect, blocked, { emptyFails: true }).slice(0, 2)).toEqual(['', 'content_filter']);
  });

  test('fails where its upstream is configured so', () => {
    expect(read(chatDialect, reasoned, { emptyFails: true }).slice(0, 2)).toEqual(['', 'upstream_truncated']);
  });
});

describe('a finish reason that says that there is none yet', () => {
  test.each(['null', 'None', '', 'not_finished'])('%j goes on', (finish_reason) => {
    const text = chunk({ delta: { content: 'a' }, finish_reason }) + say('b') + stop;
    expect(read(chatDialect, text)).toEqual(['ab', 'stop']);
  });

  test('ends no whole answer', () => {
    expect(read(chatDialect, whole({ message: { content: 'a' }, finish_reason: 'null' }))[1]).toBe(
      'upstream_truncated',
    );
  });
});

describe('half a surrogate pair at the end of a piece of text', () => {
  const deltasOf = (...pieces: string[]) => {
    const reader = createReader(chatDialect, {
      contentType: 'text/event-stream',
      streamAsked: true,
      finishReason: 'required',
      thoughtTag: null,
      sentTokens: 1_000,
      sanitise: plainSanitiser,
      isFast: true,
    });
    const deltas = pieces.flatMap((piece) => reader.push(Buffer.from(say(piece))).deltas);
    return [...deltas, ...reader.push(Buffer.from(stop)).deltas];
  };

  test('waits for its other half', () => {
    expect(deltasOf('A\uD83D', '\uDE00B')).toEqual(['A', '\u{1F600}B']);
    expect(deltasOf('\uD83D', '', '\uDE00')).toEqual(['\u{1F600}']);
  });

  test('becomes U+FFFD where the other half does not come', () => {
    expect(deltasOf('A\uD83D')).toEqual(['A', '\uFFFD']);
    expect(deltasOf('A\uD83D', 'B')).toEqual(['A', '\uFFFDB']);
    expect(deltasOf('\uDE00', 'a')).toEqual(['\uFFFD', 'a']);
  });
});

describe('a Responses stream that closes a little differently', () => {
  const delta = (text: string): string => data({ type: 'response.output_text.delta', delta: text });
  const closed = (text: string): string => data({ type: 'response.output_text.done', text });
  const completed = (text: string | null, status = 'completed'): string => {
    const output = text === null ? [] : [{ type: 'message', content: [{ type: 'output_text', text }] }];
    return data({ type: 'response.completed', response: { status, output } });
  };

  test.each<[string, string, readonly string[]]>([
    ['with the status stop', delta('a b') + completed('a b', 'stop'), []],
    [
      'with the status of a running one',
      delta('a b') + completed('a b', 'in_progress'),
      ['inconsistent_end'],
    ],
    ['with a trimmed text', delta(' a b\n') + closed('a b') + completed(' a b\n'), ['inconsistent_end']],
    [
      'with its last part alone',
      delta('a ') + closed('a ') + delta('b') + completed('b'),
      ['inconsistent_end'],
    ],
    ['with another text of its length', delta('a b') + completed('a c'), ['inconsistent_end']],
    [
      'with a part that is closed twice',
      delta('a b') + closed('a b') + closed('a b') + completed('a b'),
      ['inconsistent_end'],
    ],
  ])('is complete: %s', (_name, text, violations) => {
    const [said, ending, ...found] = read(responsesDialect, text);
    expect([said?.trim(), ending, ...found]).toEqual(['a b', 'stop', ...violations]);
  });

  test('fails if it shows more text than was sent', () => {
    expect(read(responsesDialect, delta('a b') + completed('a c d'))[1]).toBe('upstream_invalid');
  });
});

describe('an event stream with something else in it', () => {
  test.each([
    ['in one line', '{"error":{"message":"slow down","code":"rate_limit_exceeded"}}\n'],
    [
      'in several',
      '{\n  "error": {\n    "message": "slow down",\n    "code": "rate_limit_exceeded"\n  }\n}\n',
    ],
  ])('is the error that stands there as bare JSON, %s', (_name, error) => {
    expect(read(chatDialect, say('a') + error)[1]).toBe('upstream_rate_limited');
    expect(read(chatDialect, error, { contentType: 'text/event-stream', streamAsked: true })[1]).toBe(
      'upstream_rate_limited',
    );
  });

  test('ignores null after the end', () => {
    expect(read(chatDialect, say('a') + stop + 'data: null\n\n')).toEqual(['a', 'stop']);
    const early = chunk({ delta: {}, finish_reason: 'stop' }) + 'data: null\n\n' + done;
    expect(read(chatDialect, say('a') + early)).toEqual(['a', 'stop']);
  });
});

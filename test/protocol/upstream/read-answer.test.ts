import { describe, expect, test } from 'vitest';
import { chatDialect } from '../../../src/protocol/upstream/chat.ts';
import { responsesDialect } from '../../../src/protocol/upstream/responses.ts';
import type { Dialect } from '../../../src/protocol/upstream/dialect.ts';
import { createReader } from '../../../src/protocol/upstream/read-answer.ts';
import { bodyReader, readUpstream, streamReader, summarize } from '../../support/read-upstream.ts';
import type { ProtocolViolation } from '../../../src/protocol/text.ts';
import { plainSanitiser } from '../../support/sanitiser.ts';

const chunk = (content: string, reason: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: reason }] })}\n\n`;
const usage = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}\n\n';
const done = 'data: [DONE]\n\n';
const stream = chunk('x', 'stop') + usage + done;
const body = '{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}';
const completed =
  'data: {"type":"response.output_text.delta","delta":"x"}\n\n' +
  'data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":1,"output_tokens":1}}}\n\n';

describe('the violations of an answer', () => {
  const violationsOf = (dialect: Dialect, text: string) => {
    const reader = streamReader(dialect);
    reader.push(new TextEncoder().encode(text));
    reader.end();
    return [...reader.answer.violations].toSorted();
  };

  test.each<[string, string, ProtocolViolation[]]>([
    ['no fault', stream, []],
    ['no [DONE]', chunk('x', 'stop') + usage, ['missing_done']],
    ['no usage', chunk('x', 'stop') + done, ['missing_usage']],
    ['no finish reason', chunk('x') + usage + done, ['missing_finish']],
    ['no end at all', chunk('x'), ['missing_finish']],
    ['neither usage nor [DONE]', chunk('x', 'stop'), ['missing_done', 'missing_usage']],
    ['broken JSON', 'data: {"choices\n\n', ['bad_json']],
    ['text after the end', stream + chunk('late'), ['duplicate_terminal']],
    ['a second [DONE], which is harmless', stream + done, []],
    ['an event of over 1 MiB', `data: ${'x'.repeat(1_100_000)}`, ['oversized_event']],
  ])('are listed for a chat stream with %s', (_name, text, violations) => {
    expect(violationsOf(chatDialect, text)).toEqual(violations);
  });

  test.each<[string, string, ProtocolViolation[]]>([
    ['no fault', completed, []],
    ['[DONE] after the last event', completed + done, []],
    ['two last events', completed + completed, ['duplicate_terminal']],
    ['no usage', completed.replace(/,"usage":\{[^}]*\}/, ''), ['missing_usage']],
    ['no last event', 'data: {"type":"response.output_text.delta","delta":"x"}\n\n', ['missing_finish']],
  ])('are listed for a Responses stream with %s', (_name, text, violations) => {
    const reader = streamReader(responsesDialect);
    readUpstream(reader, [text]);
    expect([...reader.answer.violations]).toEqual(expect.arrayContaining(violations));
    expect(
      reader.answer.violations.has('duplicate_terminal') ||
        violations.length === reader.answer.violations.size,
    ).toBe(true);
  });
});

describe('the reader of an answer', () => {
  const read = (contentType: string, streamAsked: boolean, text: string) => {
    const reader = createReader(chatDialect, {
      contentType,
      streamAsked,
      finishReason: 'required',
      thoughtTag: null,
      sentTokens: 1_000_000,
      isFast: true,
      sanitise: plainSanitiser,
    });
    const { text: said, ending } = summarize(readUpstream(reader, Array.from(text)));
    return [said, ending, reader.answer.violations.has('wrong_content_type')];
  };

  test.each<[string, string, boolean, string, string, string, boolean]>([
    ['a requested stream', 'text/event-stream; charset=utf-8', true, stream, 'x', 'stop', false],
    ['a requested body', 'application/json', false, body, 'x', 'stop', false],
    [
      'a body of another JSON type',
      'application/problem+json; charset=utf-8',
      false,
      body,
      'x',
      'stop',
      false,
    ],
    ['a body instead of a stream', 'application/json', true, body, 'x', 'stop', true],
    ['a stream instead of a body', 'text/event-stream', false, stream, 'x', 'stop', true],
    ['a stream without a content type', '', true, stream, 'x', 'stop', true],
    ['a body without a content type', '', false, body, 'x', 'stop', true],
    ['a body after blank lines without a content type', '', false, `\r\n\n \t${body}`, 'x', 'stop', true],
    ['an empty body without a content type', '', true, '', '', 'upstream_invalid', true],
    ['a web page', 'text/html', true, '<html>', '', 'upstream_invalid', true],
    ['a list without a content type', '', false, `[${body}]`, '', 'upstream_invalid', true],
    ['JSON called plain text', 'text/plain', false, body, 'x', 'stop', true],
    ['plain text', 'text/plain', false, 'x', '', 'upstream_invalid', true],
    ['a stream called JSON', 'application/json', true, stream, 'x', 'stop', true],
    ['a stream called plain text', 'text/plain', true, `: hello\n\n${stream}`, 'x', 'stop', true],
    [
      'a stream that begins with an unknown field',
      'text/event-stream',
      true,
      `x: 1\n${stream}`,
      'x',
      'stop',
      false,
    ],
    ['such a stream without a content type', '', true, `x: 1\n${stream}`, 'x', 'stop', true],
    ['a body called a stream', 'text/event-stream', true, body, 'x', 'stop', false],
    ['a script that is not JSON', 'application/jsonp', false, `f(${body})`, '', 'upstream_invalid', true],
  ])('handles %s', (_name, contentType, streamAsked, text, said, ending, isWrong) => {
    expect(read(contentType, streamAsked, text)).toEqual([said, ending, isWrong]);
  });
});

describe('whether an answer is used as a whole or not at all', () => {
  test.each<[string, string, boolean, boolean]>([
    ['application/json', body, true, true],
    ['application/json', stream, true, false],
    ['text/event-stream', stream, false, false],
    ['text/event-stream', body, false, true],
    ['', stream, true, false],
    ['text/plain', body, true, true],
  ])('is told by %j at first, and then by its first bytes', (contentType, text, atFirst, then) => {
    const reader = createReader(chatDialect, {
      contentType,
      streamAsked: true,
      finishReason: 'required',
      thoughtTag: null,
      sentTokens: 1_000_000,
      isFast: true,
      sanitise: plainSanitiser,
    });
    expect(reader.isWhole).toBe(atFirst);
    reader.push(Buffer.from(text));
    expect(reader.isWhole).toBe(then);
  });
});

describe('a whole body', () => {
  const whole = Buffer.from(`\uFEFF${body.replace('"x"', '"é😀\uFFFD"')}`);
  const read = (pieces: readonly Uint8Array[]) => summarize(readUpstream(bodyReader(chatDialect), pieces));

  test('reads the same in two pieces as in one, wherever it is cut', () => {
    const inOne = read([whole]);
    expect(inOne.text).toBe('é😀\uFFFD');
    for (let cut = 1; cut < whole.length; cut++)
      expect(read([whole.subarray(0, cut), whole.subarray(cut)]), `cut at ${cut}`).toEqual(inOne);
  });

  test('that ends before its JSON does is truncated, wherever it is cut', () => {
    const open = Buffer.from(
      JSON.stringify({
        choices: [{ message: { content: 'a "b" \\ \u0001 é😀' }, finish_reason: 'stop', index: 0 }],
        usage: { prompt_tokens: 1, ratio: -1.5e3 },
        flags: [true, false, null],
      }).replace('é', String.raw`\u00e9`),
    );
    expect(read([open])).toMatchObject({ text: 'a "b" \\ \u0001 é😀', ending: 'stop' });
    for (let length = 1; length < open.length; length++)
      expect(read([open.subarray(0, length)]), `cut at ${length}`).toMatchObject({
        text: '',
        ending: 'upstream_truncated',
      });
  });

  test.each([
    '',
    ' ',
    '{"choices":[}',
    '{"choices":nul1',
    '{"a":1}}',
    'nul',
    '"a',
    '<html>',
    String.raw`{"a":"\u1x"`,
  ])('that is broken otherwise, or never began (%j), is invalid', (text) => {
    expect(read([Buffer.from(text)]).ending).toBe('upstream_invalid');
  });

  test('reads the same in two pieces as in one if it is not UTF-8', () => {
    const broken = Buffer.from(body.replace('"x"', '"\xe9\xff"'), 'latin1');
    const inOne = read([broken]);
    for (let cut = 1; cut < broken.length; cut++)
      expect(read([broken.subarray(0, cut), broken.subarray(cut)]), `cut at ${cut}`).toEqual(inOne);
  });
});

describe('a chat stream with several finish reasons', () => {
  test.each([
    [['stop', 'stop'], 'stop'],
    [['stop', 'length'], 'length'],
    [['length', 'stop'], 'length'],
    [['content_filter', 'length', 'stop'], 'content_filter'],
  ])('%j ends by the one that says that text is missing: %s', (reasons, ending) => {
    const frames = reasons.map((reason) => chunk('x', reason)).join('');
    expect(summarize(readUpstream(streamReader(chatDialect), [frames + done])).ending).toBe(ending);
  });
});

describe('a chat stream of an upstream whose finish reason is optional', () => {
  const outcome = (text: string) => {
    const reader = streamReader(chatDialect, 'optional');
    const { ending } = summarize(readUpstream(reader, [text]));
    return [ending, reader.answer.violations.has('missing_finish')];
  };

  test('is finished with [DONE]', () => {
    expect(outcome(chunk('x') + done)).toEqual(['stop', true]);
  });

  test('is truncated without [DONE]', () => {
    expect(outcome(chunk('x'))).toEqual(['upstream_truncated', true]);
  });

  test('ends by its finish reason if it has one', () => {
    expect(outcome(chunk('x', 'length') + done)).toEqual(['length', false]);
  });
});

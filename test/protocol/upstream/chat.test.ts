import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { maxEventChars } from '../../../src/protocol/sse.ts';
import { chatDialect } from '../../../src/protocol/upstream/chat.ts';
import { propertyRun } from '../../support/property-run.ts';
import { readUpstream, streamReader, summarize } from '../../support/read-upstream.ts';

const done = 'data: [DONE]\n\n';
const frame = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
const chunk = (delta: unknown, reason: unknown = null, extra: object = {}) =>
  frame({ id: 'x', choices: [{ index: 0, delta, finish_reason: reason }], ...extra });
const say = (content: unknown) => chunk({ content });
const finish = (reason = 'stop') => chunk({}, reason);

const read = (pieces: readonly (string | Uint8Array)[]) => readUpstream(streamReader(chatDialect), pieces);
const outcome = (...frames: string[]) => {
  const { text, ending } = summarize(read(frames));
  return [text, ending];
};

/** An ordinary stream: role, four texts, finish reason, usage, `[DONE]`. */
const usageFrame = frame({
  choices: [],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
});
const ordinary = [
  chunk({ role: 'assistant', content: '' }),
  say('one '),
  say('zwei: é€😀 '),
  say('"drei"\n'),
  say('四'),
  finish(),
  usageFrame,
  done,
];
const ordinaryText = 'one zwei: é€😀 "drei"\n四';

describe('a chat stream of an upstream', () => {
  test('yields each text as it arrives, then its ending with the raw reason and the usage', () => {
    expect(read([say('a'), say('b'), finish('eos'), usageFrame, done])).toEqual([
      { type: 'delta', text: 'a' },
      { type: 'delta', text: 'b' },
      {
        type: 'finish',
        reason: 'stop',
        rawReason: 'eos',
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

  test('yields a text before the next one arrives', () => {
    const reader = streamReader(chatDialect);
    const part = reader.push(new TextEncoder().encode(say('now')));
    expect(part).toEqual({ deltas: ['now'], ending: null });
  });

  test('reads the same wherever its bytes are split', () => {
    const bytes = new TextEncoder().encode(ordinary.join('').replaceAll('\n\n', '\r\n\r\n'));
    const expected = summarize(read([bytes]));
    expect(expected).toMatchObject({ text: ordinaryText, ending: 'stop', usage: { totalTokens: 7 } });
    for (let cut = 0; cut <= bytes.length; cut++)
      expect(summarize(read([bytes.subarray(0, cut), bytes.subarray(cut)]))).toEqual(expected);
  });

  test('reads the same for any texts and any number of splits', () => {
    const texts = fc.array(fc.string({ unit: 'binary', maxLength: 8 }), { maxLength: 6 });
    const endings = fc.constantFrom([], [done], [finish()], [finish('length'), usageFrame, done]);
    fc.assert(
      fc.property(texts, endings, fc.array(fc.nat(), { maxLength: 20 }), (said, ending, places) => {
        const whole = [...said.map(say), ...ending].join('');
        const bytes = Buffer.from(whole);
        const cuts = places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b);
        const pieces = [0, ...cuts].map((start, index) => bytes.subarray(start, cuts[index]));
        const cutUp = summarize(read(pieces));
        expect(cutUp).toEqual(summarize(read([whole])));
        expect(cutUp.text).toBe(said.join(''));
      }),
      propertyRun(),
    );
  });
});

describe('a chat stream that is cut off', () => {
  const wholeFrom = ordinary.indexOf(finish()) + 1;

  test.each(ordinary.slice(0, wholeFrom).map((_frame, count) => count))(
    'after %i frames is truncated, never finished',
    (count) => {
      expect(summarize(read(ordinary.slice(0, count)))).toMatchObject({
        ending: 'upstream_truncated',
        usage: null,
      });
    },
  );

  test('at any byte before the end of its finish reason is not finished', () => {
    const bytes = Buffer.from(ordinary.join(''));
    const reasonEnd = bytes.indexOf('"finish_reason":"stop"}]}') + '"finish_reason":"stop"}]}'.length;
    for (let length = 0; length < reasonEnd; length++)
      expect(summarize(read([bytes.subarray(0, length)])).ending).toMatch(/^upstream_(truncated|invalid)$/);
    expect(summarize(read([bytes.subarray(0, reasonEnd)])).ending).toBe('stop');
  });

  test('after its finish reason is finished, with or without [DONE]', () => {
    for (let count = wholeFrom; count <= ordinary.length; count++)
      expect(outcome(...ordinary.slice(0, count))).toEqual([ordinaryText, 'stop']);
  });

  test('inside [DONE] is finished only if it has a reason', () => {
    expect(outcome(say('a'), finish(), 'data: [DONE]')).toEqual(['a', 'stop']);
    expect(outcome(say('a'), 'data: [DONE]')).toEqual(['a', 'upstream_truncated']);
  });
});

describe('the finish reason of a chat answer', () => {
  test.each([
    ['stop', 'stop'],
    ['eos', 'stop'],
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['length', 'length'],
    ['max_tokens', 'length'],
    ['MAX_TOKENS', 'length'],
    ['content_filter', 'content_filter'],
    ['safety', 'content_filter'],
    ['SAFETY', 'content_filter'],
    ['refusal', 'content_filter'],
    ['constructor', 'upstream_error'],
    ['__proto__', 'upstream_error'],
    ['insufficient_system_resource', 'upstream_error'],
    ['network_error', 'upstream_error'],
    ['error', 'upstream_error'],
    ['abort', 'upstream_error'],
    ['tool_calls', 'upstream_invalid'],
    ['function_call', 'upstream_invalid'],
  ])('%s ends the answer as %s', (raw, ending) => {
    expect(outcome(say('a'), finish(raw), done)).toEqual(['a', ending]);
  });

  test.each([null, '', 7, true, {}, undefined])('%j counts as missing', (reason) => {
    expect(outcome(say('a'), chunk({ content: 'b' }, reason), done)).toEqual(['ab', 'upstream_truncated']);
  });

  test('may arrive early: later text and usage still count, and the last reason is used', () => {
    const events = read([chunk({ content: 'a' }, 'stop'), say('b'), chunk({ content: 'c' }, 'length'), done]);
    expect(summarize(events)).toMatchObject({ text: 'abc', ending: 'length' });
  });

  test('before the last text proves nothing: without [DONE] and a later reason the answer is truncated', () => {
    const early = [chunk({ content: 'The answer is 4' }, 'stop'), say('2. Because of')];
    const text = 'The answer is 42. Because of';
    expect(outcome(...early)).toEqual([text, 'upstream_truncated']);
    expect(outcome(...early, usageFrame)).toEqual([text, 'upstream_truncated']);
    expect(outcome(chunk({ content: 'The answer is 4' }, 'length'), say('2. Because of'))).toEqual([
      text,
      'upstream_truncated',
    ]);
    expect(outcome(...early, finish())).toEqual([text, 'stop']);
    expect(outcome(...early, done)).toEqual([text, 'stop']);
  });

  test.each<[string, string[]]>([
    ['text', [chunk({ content: 'a' }, 'stop'), chunk({ content: 'b' }, 'stop')]],
    ['text, and one without', [chunk({ content: 'ab' }, 'stop'), chunk({ content: '' }, 'stop')]],
    ['text, and one of thoughts', [chunk({ content: 'ab' }, 'stop'), chunk({ reasoning: 'hm' }, 'stop')]],
    [
      'text, after the role',
      [chunk({ role: 'assistant' }), ...['a', 'b'].map((content) => chunk({ content }, 'stop'))],
    ],
    ['thoughts', [chunk({ reasoning: 'h' }, 'stop'), chunk({ reasoning: 'm' }, 'stop')]],
  ])(
    'on every frame proves nothing either: only [DONE] tells the last one from others, of %s',
    (name, frames) => {
      const text = name === 'thoughts' ? '' : 'ab';
      expect(outcome(...frames)).toEqual([text, 'upstream_truncated']);
      expect(outcome(...frames, usageFrame)).toEqual([text, 'upstream_truncated']);
      expect(outcome(...frames, finish(), done)).toEqual([text, 'stop']);
    },
  );

  test('is given again after the text, or with a copy of it, by upstreams that do not mark the end', () => {
    expect(outcome(say('a'), finish(), finish(), usageFrame)).toEqual(['a', 'stop']);
    expect(outcome(chunk({ role: 'assistant' }, 'stop'), say('a'), chunk({ content: 'b' }, 'stop'))).toEqual([
      'ab',
      'stop',
    ]);
    const copy = frame({ choices: [{ index: 0, message: { content: 'abc' }, finish_reason: 'stop' }] });
    expect(outcome(say('a'), chunk({ content: 'b' }, 'stop'), copy)).toEqual(['abc', 'stop']);
  });

  test('before the last thoughts proves nothing: text may have been to come', () => {
    expect(outcome(say('a'), finish(), chunk({ reasoning: 'hm' }))).toEqual(['a', 'upstream_truncated']);
  });

  test('that blocks the text stands, whatever text comes after it', () => {
    expect(outcome(chunk({ content: 'a' }, 'content_filter'), say('b'))).toEqual(['ab', 'content_filter']);
  });

  test('is given for half a character that came before it', () => {
    expect(outcome(say('a\ud83d'), finish(), usageFrame)).toEqual(['a\ufffd', 'stop']);
  });

  test('may arrive with the last text, or without a delta', () => {
    expect(outcome(chunk({ content: 'a' }, 'stop'), done)).toEqual(['a', 'stop']);
    expect(outcome(say('a'), frame({ choices: [{ index: 0, finish_reason: 'length' }] }))).toEqual([
      'a',
      'length',
    ]);
  });

  test('that reports an error is final: a later [DONE] does not finish the answer', () => {
    expect(outcome(say('a'), finish('error'), say('b'), finish(), done)).toEqual(['a', 'upstream_error']);
  });
});

describe('the text of a chat stream', () => {
  test.each<[string, unknown, string]>([
    ['a string', { content: 'x' }, 'x'],
    ['an empty string', { content: '' }, ''],
    ['null', { content: null }, ''],
    [
      'parts, some of which are text',
      {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
          { type: 'text', text: 'a' },
          { type: 'reasoning', text: 'hm' },
          null,
          'loose',
          { type: 'output_text', text: 'b' },
          { text: 'c' },
          { type: 'text', text: { value: 'd' } },
        ],
      },
      'aloosebcd',
    ],
    ['a refusal', { content: null, refusal: 'I can’t' }, 'I can’t'],
    ['no refusal', { content: 'x', refusal: null }, 'x'],
    ['reasoning_content', { content: null, reasoning_content: 'hm' }, ''],
    ['reasoning', { content: 'x', reasoning: 'hm', reasoning_details: [{ text: 'hm' }] }, 'x'],
    ['an empty list of tool calls', { content: 'x', tool_calls: [] }, 'x'],
    ['no tool calls', { content: 'x', tool_calls: null, function_call: null }, 'x'],
  ])('in a delta with %s excludes everything but text', (_name, delta, text) => {
    expect(outcome(chunk(delta), finish(), done)).toEqual([text, 'stop']);
  });

  test.each([7, true, { title: 'x' }])(
    'that is not a string (%j) fails the answer, since it would be lost',
    (content) => {
      expect(outcome(chunk({ content }), finish(), done)).toEqual(['', 'upstream_invalid']);
    },
  );

  test('may arrive as one whole message in a separate event, and is not repeated after its deltas', () => {
    const whole = frame({ choices: [{ index: 0, message: { content: 'ab' }, finish_reason: 'stop' }] });
    expect(outcome(whole, done)).toEqual(['ab', 'stop']);
    expect(outcome(chunk({ content: 'a' }), chunk({ content: 'b' }), whole, done)).toEqual(['ab', 'stop']);
  });

  test.each<[string, unknown, string, string, differs: boolean]>([
    ['with more text at its end, which is said', 'Hello world', 'Hello world', 'stop', false],
    ['in parts, with more text at their end', [{ type: 'text', text: 'Hello' }], 'Hello', 'stop', false],
    ['of the same text', 'Hel', 'Hel', 'stop', false],
    ['without text', '', 'Hel', 'stop', false],
    ['that has white space otherwise', ' Hel\n', 'Hel', 'stop', true],
    ['that is shorter', 'He', 'Hel', 'stop', true],
    ['with thoughts before the text', '<think>so</think>\nHel', 'Hel', 'stop', true],
    ['of another beginning and more text', 'Oh, Hello', 'Hel', 'upstream_invalid', true],
  ])('is held against a closing message %s', (_name, content, text, ending, differs) => {
    const closing = { index: 0, delta: {}, message: { role: 'assistant', content }, finish_reason: 'stop' };
    for (const frames of [[], [finish()]]) {
      const reader = streamReader(chatDialect);
      const parts = readUpstream(reader, [
        say('H'),
        say('el'),
        ...frames,
        frame({ choices: [closing] }),
        done,
      ]);
      expect(summarize(parts)).toMatchObject({ text, ending });
      expect(reader.answer.violations.has('inconsistent_end')).toBe(differs);
    }
  });

  test.each<[string, (text: string) => unknown]>([
    ['a string', (text) => text],
    ['parts', (text) => [{ type: 'text', text }]],
  ])(
    'in %s is held against the message beside its last delta, and against no earlier one',
    (_form, write) => {
      const both = (text: string, whole: string, reason: string | null) => {
        const [delta, message] = [{ content: write(text) }, { content: write(whole) }];
        return frame({ choices: [{ index: 0, delta, message, finish_reason: reason }] });
      };
      const frames = [both('a', 'a', null), both('b', 'b', null), both('c', 'abcd', 'stop'), done];
      const reader = streamReader(chatDialect);
      expect(summarize(readUpstream(reader, frames))).toMatchObject({ text: 'abcd', ending: 'stop' });
      expect(reader.answer.violations.has('inconsistent_end')).toBe(false);
    },
  );

  test.each([
    ['an empty text', ''],
    ['an empty list', []],
    ['null', null],
  ])('is that of the message where the delta beside it has %s', (_name, content) => {
    const both = frame({ choices: [{ index: 0, delta: { content }, message: { content: 'ab' } }] });
    expect(outcome(both, finish(), done)).toEqual(['ab', 'stop']);
  });

  test('fails where a shorter closing message has more letters', () => {
    const closing = { index: 0, delta: {}, message: { content: 'abc' }, finish_reason: 'stop' };
    const frames = [say('a'), say('     '), frame({ choices: [closing] }), done];
    expect(outcome(...frames)).toEqual(['a     ', 'upstream_invalid']);
  });

  test('that differs from its closing message is a violation', () => {
    const whole = frame({ choices: [{ index: 0, message: { content: 'b' }, finish_reason: 'stop' }] });
    const reader = streamReader(chatDialect);
    expect(summarize(readUpstream(reader, [say('a'), whole, done]))).toMatchObject({
      text: 'a',
      ending: 'stop',
    });
    expect(reader.answer.violations.has('inconsistent_end')).toBe(true);
  });

  test('excludes other choices, and their finish reasons are ignored', () => {
    const other = { index: 1, delta: { content: 'B' }, finish_reason: 'length' };
    const first = { index: 0, delta: { content: 'A' } };
    expect(outcome(frame({ choices: [other, first] }), frame({ choices: [other] }), finish(), done)).toEqual([
      'A',
      'stop',
    ]);
    expect(outcome(frame({ choices: [other] }), done)).toEqual(['', 'upstream_truncated']);
  });

  test('includes a choice without an index as the first one', () => {
    expect(outcome(frame({ choices: [{ delta: { content: 'A' } }] }), finish())).toEqual(['A', 'stop']);
  });

  test.each<[string, string]>([
    ['the empty first chunk of Azure', frame({ id: '', choices: [], prompt_filter_results: [] })],
    ['a chunk without choices', frame({ id: 'x' })],
    ['choices that are not a list', frame({ choices: null })],
    ['a choice that is not an object', frame({ choices: [null, 'x'] })],
    ['a null delta', frame({ choices: [{ index: 0, delta: null }] })],
    ['a repeated role', chunk({ role: 'assistant' }) + chunk({ role: null })],
    ['comments', ': OPENROUTER PROCESSING\n\n: ping\n\n'],
    ['a ping event', 'event: ping\ndata: {}\n\n'],
    ['a null error', frame({ error: null, choices: [] })],
    ['a heartbeat whose data is no JSON', 'event: heartbeat\ndata: ok\n\n'],
    ['a heartbeat whose data is a choice', `event: Keep-Alive\n${say('not this')}`],
    ['a keepalive without data', 'event: keepalive\ndata:\n\n'],
    ['null', 'data: null\n\n'],
    ['blank data', 'data:  \n\n'],
    ['several lines of empty data', 'data:\ndata:\n\n'],
  ])('is not affected by %s', (_name, quirk) => {
    expect(outcome(quirk, say('a'), quirk, say('b'), finish(), quirk, done)).toEqual(['ab', 'stop']);
  });

  test.each(['data:  [DONE]\n\n', 'data: [DONE] \n\n', 'data:\t[DONE]\n\n'])(
    'ends with %j, whatever blanks are around it',
    (end) => {
      expect(outcome(say('a'), finish(), end, 'data: late\n\n')).toEqual(['a', 'stop']);
    },
  );

  test.each(['', ' ', false, 0, {}, [], { code: 0, message: '' }, { code: null, details: [] }])(
    'beside an error without contents (%j) is a good answer',
    (error) => {
      const extra = { error };
      const end = chunk({}, 'stop', extra);
      expect(outcome(chunk({ content: 'a' }, null, extra), end, frame(extra), done)).toEqual(['a', 'stop']);
      const inChoice = { index: 0, delta: { content: 'a' }, finish_reason: 'stop', error };
      expect(outcome(frame({ choices: [inChoice] }), done)).toEqual(['a', 'stop']);
    },
  );

  test('is ignored after [DONE], like an error there', () => {
    expect(outcome(say('a'), finish(), done, say('b'), frame({ error: {} }))).toEqual(['a', 'stop']);
    expect(outcome(say('a') + finish() + done + say('b'))).toEqual(['a', 'stop']);
  });
});

describe('a chat stream that fails', () => {
  const half = 'y'.repeat(maxEventChars / 2 + 1);

  test.each<[string, string, string]>([
    ['an error frame', frame({ error: { message: 'boom' } }), 'upstream_error'],
    ['an error given as text', frame({ error: 'boom' }), 'upstream_error'],
    ['an error about our key', frame({ error: { code: 'invalid_api_key' } }), 'upstream_auth'],
    ['an error beside choices', chunk({ content: 'b' }, 'stop', { error: { code: 1 } }), 'upstream_error'],
    ['an error event', 'event: error\ndata: {"message":"boom"}\n\n', 'upstream_error'],
    ['an error event that is not JSON', 'event: error\ndata: boom\n\n', 'upstream_error'],
    ['an error event whose data is null', 'event: error\ndata: null\n\n', 'upstream_error'],
    ['an error event whose error is empty', 'event: error\ndata: {"error":{}}\n\n', 'upstream_error'],
    ['an error that is true', frame({ error: true }), 'upstream_error'],
    ['an error that is only a code', frame({ error: { code: 7, message: '' } }), 'upstream_error'],
    ['words', 'data: ok\n\n', 'upstream_invalid'],
    ['words of an event that is no heartbeat', 'event: status\ndata: ok\n\n', 'upstream_invalid'],
    ['a tool call', chunk({ content: 'b', tool_calls: [{ index: 0 }] }), 'upstream_invalid'],
    ['a function call', chunk({ function_call: { name: 'f' } }), 'upstream_invalid'],
    ['an image', chunk({ content: [{ type: 'image_url', image_url: {} }] }), 'upstream_invalid'],
    ['a part without its text', chunk({ content: [{ type: 'text' }] }), 'upstream_invalid'],
    ['a part whose text is a number', chunk({ content: [{ type: 'text', text: 7 }] }), 'upstream_invalid'],
    ['invalid JSON', 'data: {"choices\n\n', 'upstream_invalid'],
    ['a list', 'data: []\n\n', 'upstream_invalid'],
    ['a bare string', 'data: "[DONE]"\n\n', 'upstream_invalid'],
    ['an event of over 1 MiB', `data: ${half}\ndata: ${half}\n\n`, 'upstream_invalid'],
  ])('by %s ends at once and ignores what follows', (_name, fault, code) => {
    expect(outcome(say('a'), fault, say('c'), finish(), done)).toEqual(['a', code]);
    expect(outcome(say('a'), finish(), fault, done)).toEqual(['a', code]);
    expect(outcome(say('a') + finish() + fault + done)).toEqual(['a', code]);
  });

  test('is not one with an empty event, which some servers send as a keep-alive', () => {
    expect(outcome(say('a'), 'data:\n\n', 'event: ping\ndata: {}\n\n', say('b'), finish(), done)).toEqual(
      outcome(say('a'), say('b'), finish(), done),
    );
  });

  test('by an endless line ends while the line is still arriving', () => {
    const reader = streamReader(chatDialect);
    expect(reader.push(Buffer.from(`: ${half}`))).toEqual({ deltas: [], ending: null });
    const { ending } = reader.push(Buffer.from(`${half}yyyyy`));
    expect(ending).toMatchObject({ kind: 'failed', failure: { kind: 'invalid' } });
  });

  test('keeps the usage reported before the failure, since the operator is billed for it', () => {
    expect(summarize(read([say('a'), usageFrame, frame({ error: { code: 'x' } })])).usage).toMatchObject({
      inputTokens: 3,
      outputTokens: 4,
    });
  });

  test('stays failed when the end of the body completes an event of over 1 MiB', () => {
    expect(outcome(say('a'), finish(), `data: ${half}\ndata: ${half}`)).toEqual(['a', 'upstream_invalid']);
  });

  test('quotes nothing of the upstream', () => {
    const events = read([frame({ error: { message: 'at http://10.1.2.3 with sk-secret' } })]);
    expect(JSON.stringify(events)).not.toMatch(/10\.1\.2\.3|sk-secret/);
  });
});

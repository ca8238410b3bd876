import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { dialects } from '../../../src/protocol/upstream/dialects.ts';
import type { DialectName } from '../../../src/protocol/upstream/dialects.ts';
import { maxEventChars } from '../../../src/protocol/sse.ts';
import { FrameTemplate } from '../../../src/protocol/upstream/stream/frame-template.ts';
import { streamReader } from '../../support/read-upstream.ts';
import { rewriteBytes } from '../../support/rewrite-bytes.ts';
import { propertyRun } from '../../support/property-run.ts';

/** Texts as models write them, and what is hard to copy: escapes of every notation, and characters of several bytes. */
const text = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(' the', ' quick', '\n', 'a "b"', 'C:\\', 'é', '語', '😀', '\u2028', 'content'),
  },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom('', '\ud83d', '\ude00', '\u0000', '\u001f', '\u007f') },
);

/** Notations of a JSON string. */
const notations: readonly ((value: string) => string)[] = [
  (value) => JSON.stringify(value),
  (value) => JSON.stringify(value).replaceAll('/', String.raw`\/`),
  (value) =>
    JSON.stringify(value).replaceAll(
      /[^\x20-\x7e]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    ),
  (value) => `${JSON.stringify(value).slice(0, -1)}\\u00zz"`,
  // No JSON: control characters as they are.
  (value) => `"${value}"`,
];
const literalIn = (...chosen: readonly number[]) =>
  fc.tuple(text, fc.constantFrom(...chosen)).map(([value, notation]) => notations[notation]?.(value) ?? '""');
const usualLiteral = literalIn(0, 0, 0, 0, 1, 2);
const oddLiteral = literalIn(3, 4);

const chatFrame = (delta: string, more = '"finish_reason":null}],"usage":null'): string =>
  `data: {"id":"c-1","choices":[{"index":0,"delta":{${delta}},${more}}`;

/** Values that differ from frame to frame and that no dialect reads, most of them valid JSON. */
interface Unread {
  readonly count: string;
  readonly padding: string;
}
const usualUnread = fc.record({
  count: fc.nat(1_000).map(String),
  padding: fc.stringMatching(/^[A-Za-z\d]{0,12}$/),
});
const oddValues: readonly Unread[] = [
  ...['', '07', '007', '-1', '1.5', '1e3', '"1"'].map((count) => ({ count, padding: 'x' })),
  ...['é', 'a"b', '\\n', '\\q', '\n', '","error":{"message":"no"},"x":"'].map((padding) => ({
    count: '1',
    padding,
  })),
];
const oddUnread = fc.constantFrom(...oddValues);

/** The forms of text frames. Some say more than their text, so that they must be read in full. */
type TextForm = (literal: string, unread: Unread) => string;
const textForms: Readonly<Record<DialectName, readonly TextForm[]>> = {
  chat: [
    (said, { padding }) =>
      chatFrame(`"content":${said}`, `"finish_reason":null}],"usage":null,"obfuscation":"${padding}"`),
    (said, { padding, count }) =>
      chatFrame(`"sequence_number":${count},"content":${said}`, `"finish_reason":"${padding}"}]`),
    (said) => chatFrame(`"content":${said}`),
    (said) => chatFrame(`"role":"assistant","content":${said},"refusal":null`),
    (said) => chatFrame(`"content":${said}`, '"finish_reason":"stop"}]'),
    (said) =>
      chatFrame(
        `"content":${said}`,
        '"finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":3}',
      ),
    (said) => chatFrame(`"reasoning":"hm","content":${said}`),
    (said) => chatFrame(`"refusal":${said},"content":null`),
    (said) => chatFrame(`"reasoning":${said}`),
    (said) => chatFrame(`"content":${said},"refusal":${said}`),
    (said) => chatFrame(`"content":"x","content":${said}`),
    (said) => `data: {"id":"c-1","choices":[{"index":0,"message":{"content":${said}}}]}`,
    (said) => chatFrame(`"content":${said}`, '"message":{"content":"x"},"finish_reason":null}]'),
    (said) => `:${said}\n${chatFrame(`"content":"same"`)}`,
  ],
  responses: [
    (said, { count, padding }) =>
      `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":${count},"delta":${said},"obfuscation":"${padding}"}`,
    (said) =>
      `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":${said}}`,
  ],
  anthropic: [
    (said) =>
      `event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":${said}}}`,
    (said) =>
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${said}}}`,
  ],
  gemini: [
    (said) => `data: {"candidates":[{"content":{"parts":[{"text":${said}}],"role":"model"},"index":0}]}`,
    (said) => `data: {"candidates":[{"content":{"parts":[{"text":${said},"thought":true}]},"index":0}]}`,
  ],
};

/** Frames between those of text, some of which end the answer, or break its protocol. */
const others: Readonly<Record<DialectName, readonly string[]>> = {
  chat: [
    'data: {"id":"c-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
    'data: {"id":"c-1","choices":[{"index":0,"delta":{"content":"x","reasoning":"thought"},"finish_reason":null}],"usage":null}',
    'data: {"id":"c-1","choices":[{"index":0,"delta":{"reasoning":"thought"}}]}',
    'data: {"id":"c-1","choices":[{"index":1,"delta":{"content":"other"},"finish_reason":null}],"usage":null}',
    'data: {"id":"c-2","choices":[{"index":0,"delta":{"content":"of another id"},"finish_reason":null}],"usage":null}',
    'data: {"id":"c-1","choices":[{"index":0,"delta":{"content":"last"},"finish_reason":"stop"}],"usage":null}',
    'data: {"id":"c-1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}',
    'data: {"id":"c-1","choices":[{"index":0,"delta":{},"message":{"content":"x and more"},"finish_reason":"stop"}]}',
    'data: {"id":"c-1","choices":[{"index":0,"delta":{"tool_calls":[{"id":"t"}]}}]}',
    'data: {"error":{"message":"no","code":"server_error"}}',
    'data: [DONE]',
  ],
  responses: [
    'event: response.output_text.done\ndata: {"type":"response.output_text.done","text":"other"}',
    'event: response.completed\ndata: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":9,"output_tokens":9}}}',
  ],
  anthropic: [
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}',
    'event: content_block_start\ndata: {"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use"}}',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}',
    'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}',
    'event: message_stop\ndata: {"type":"message_stop"}',
  ],
  gemini: [
    'data: {"candidates":[{"index":0,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":9}}',
  ],
};
const noise = [
  ': ping',
  'id: 7',
  'data: not JSON',
  'event: x',
  'event: error',
  'data: {"id"',
  'data:\ndata: 7',
  'data: null',
  'data:  [DONE] ',
  'event: Heartbeat\ndata: ok',
];
const separators = ['\r\n\r\n', '\r\r', '\n\n\n', '\n', ''];

/** Frames between those of text, or in their place. */
const oddFrame = (dialect: DialectName, form: TextForm) =>
  fc.oneof(
    fc.tuple(oddLiteral, usualUnread).map((values) => form(...values)),
    fc.tuple(usualLiteral, oddUnread).map((values) => form(...values)),
    fc.constantFrom(...others[dialect]),
    fc.constantFrom(...noise),
  );

/** Good ends, with usage; a Responses upstream says the whole text once more. */
function endOf(dialect: DialectName, literals: readonly string[]): string {
  const whole = JSON.stringify(literals.map((said) => JSON.parse(said) as string).join(''));
  const ends: Readonly<Record<DialectName, readonly string[]>> = {
    chat: [
      'data: {"id":"c-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
      'data: {"id":"c-1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}',
      'data: [DONE]',
    ],
    responses: [
      `data: {"type":"response.output_text.done","text":${whole}}`,
      'data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":9,"output_tokens":9}}}',
    ],
    anthropic: others.anthropic.slice(-2),
    gemini: others.gemini,
  };
  return ends[dialect].map((frame) => `${frame}\n\n`).join('');
}

/** A stream of frames of one form, some odd ones among them, as bytes, some of them no UTF-8; and places to cut it at. */
const stream = fc
  .constantFrom<DialectName>('chat', 'chat', 'responses', 'anthropic', 'gemini')
  .chain((dialect) => fc.constantFrom(...textForms[dialect].map((form) => ({ dialect, form }))))
  .chain(({ dialect, form }) =>
    fc.record({
      dialect: fc.constant(dialect),
      bytes: fc
        .record({
          said: fc.array(fc.tuple(usualLiteral, usualUnread), { size: 'max', maxLength: 30 }),
          odd: fc.array(
            fc.tuple(fc.nat(), oddFrame(dialect, form), fc.constantFrom('\n\n', '\n\n', ...separators)),
            { maxLength: 2 },
          ),
          isEnded: fc.boolean(),
        })
        .map(({ said, odd, isEnded }) => {
          const frames = said.map((values) => `${form(...values)}\n\n`);
          for (const [place, frame, separator] of odd)
            frames.splice(place % (frames.length + 1), 0, frame + separator);
          const literals = said.map(([literal]) => literal);
          return Buffer.from(frames.join('') + (isEnded ? endOf(dialect, literals) : ''));
        }),
      broken: fc.option(fc.tuple(fc.nat(), fc.constantFrom(0xff, 0xc3, 0x80, 0x22, 0x0a)), { freq: 4 }),
      places: fc.array(fc.nat(), { maxLength: 12 }),
    }),
  );

function piecesOf(bytes: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted(
    (a, b) => a - b,
  );
  return cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end));
}

describe('the fast path of a stream', () => {
  test.each(['chat', 'responses'] as const)(
    'gives %s clients the bytes of the complete path',
    (clientProtocol) => {
      const read = vi.spyOn(FrameTemplate.prototype, 'read');
      const run = propertyRun(600);
      let finished = 0;
      fc.assert(
        fc.property(stream, ({ dialect, bytes, broken, places }) => {
          if (broken !== null && bytes.length > 0) bytes[broken[0] % bytes.length] = broken[1];
          const readBy = (isFast: boolean) => {
            const pieces = piecesOf(bytes, places);
            const reader = streamReader(dialects[dialect], 'required', isFast);
            const parts = [...pieces.map((piece) => reader.push(piece)), reader.end()];
            const { violations, thoughts, implausible } = reader.answer;
            return {
              parts,
              usage: reader.answer.knownUsage(),
              violations: [...violations],
              thoughts: thoughts.beginning,
              implausible,
              sent: rewriteBytes(dialects[dialect], clientProtocol, pieces, isFast),
            };
          };
          const fast = readBy(true);
          expect(fast).toEqual(readBy(false));
          if (fast.parts.some(({ ending }) => ending?.kind === 'finished' && ending.usage !== null))
            finished++;
        }),
        run,
      );
      const copied = read.mock.results.filter(({ value }) => value !== null).length;
      read.mockRestore();
      expect(copied).toBeGreaterThan(2 * run.numRuns);
      expect(finished).toBeGreaterThan(run.numRuns / 25);
    },
  );

  test('reads a frame of a learned form as the complete path does when it is longer than an event may be', () => {
    const form = (said: string) => `${chatFrame(`"content":${JSON.stringify(said)}`)}\n\n`;
    const shell = form('').length - 'data: \n\n'.length;
    for (const chars of [maxEventChars - shell, maxEventChars - shell + 1]) {
      const bytes = Buffer.from(
        Array.from({ length: 9 }, () => form('a')).join('') + form('x'.repeat(chars)),
      );
      const read = (isFast: boolean) => {
        const reader = streamReader(dialects.chat, 'required', isFast);
        return [reader.push(bytes), reader.end(), [...reader.answer.violations]];
      };
      expect(read(true)).toEqual(read(false));
    }
  });

  test.each<
    [string, DialectName, (repeat: (form: TextForm | undefined, times: number) => string[]) => string[]]
  >([
    [
      'usage before the last text, which can not have counted it',
      'chat',
      (repeat) => [
        ...repeat(textForms.chat[2], 9),
        ...others.chat.slice(6, 7),
        ...repeat(textForms.chat[2], 5),
      ],
    ],
    [
      'an empty delta beside a message or a text',
      'chat',
      () => {
        const framesWith = (more: string) =>
          [...Array.from({ length: 9 }, () => 'a'), ''].map((said) =>
            chatFrame(`"content":"${said}"`, `${more},"finish_reason":null}]`),
          );
        return [framesWith('"message":{"content":"abc"}'), framesWith('"text":"other"')].flat();
      },
    ],
    [
      'blocks of text that begin with it, before one of a tool that the provider runs',
      'anthropic',
      (repeat) => [
        ...repeat(textForms.anthropic[0], 9),
        ...others.anthropic.filter((frame) => frame.includes('server_tool_use')),
        ...repeat(textForms.anthropic[0], 1),
        ...others.anthropic.slice(-3),
      ],
    ],
    [
      'parts that are only said as a whole',
      'responses',
      (repeat) => [
        ...repeat((said) => `data: {"type":"response.output_text.done","text":${said}}`, 9),
        ...repeat(textForms.responses[0], 9),
        'data: {"type":"response.output_text.done","text":"aaaaaaaaa"}',
        ...others.responses.slice(-1),
      ],
    ],
  ])('reads a stream with %s as the complete path does', (_name, dialect, framesOf) => {
    const repeat = (form: TextForm | undefined, times: number): string[] =>
      Array.from({ length: times }, () => form?.('"a"', { count: '1', padding: '' }) ?? '');
    const bytes = Buffer.from(
      framesOf(repeat)
        .map((frame) => `${frame}\n\n`)
        .join(''),
    );
    const read = (isFast: boolean) => {
      const reader = streamReader(dialects[dialect], 'required', isFast);
      return [reader.push(bytes), reader.end(), reader.answer.knownUsage(), [...reader.answer.violations]];
    };
    expect(read(true)).toEqual(read(false));
  });

  test('learns nothing from a read that ends within the next frame, wherever its line ends are', () => {
    const frame = `${chatFrame('"content":"a"')}\r\n\r\n`;
    const head = frame.slice(0, 9);
    const rest = frame.slice(9);
    const pieces = [frame, ...Array.from({ length: 20 }, () => [frame + head, rest]).flat()];
    const read = (isFast: boolean) => {
      const reader = streamReader(dialects.chat, 'required', isFast);
      return pieces.flatMap((piece) => reader.push(Buffer.from(piece)).deltas);
    };
    expect(read(true)).toEqual(Array.from({ length: 41 }, () => 'a'));
    expect(read(false)).toEqual(read(true));
  });

  test.each(oddValues)('reads a frame with the unread values %j as the complete path does', (odd) => {
    const values = [...Array.from({ length: 9 }, () => ({ count: '1', padding: 'x' })), odd, odd];
    for (const [dialect, form] of [
      ['chat', textForms.chat[0]],
      ['responses', textForms.responses[0]],
    ] as const) {
      const bytes = Buffer.from(values.map((unread, n) => `${form?.(`"${n}"`, unread)}\n\n`).join(''));
      const read = (isFast: boolean) => {
        const reader = streamReader(dialects[dialect], 'required', isFast);
        return [reader.push(bytes), reader.end()];
      };
      expect(read(true)).toEqual(read(false));
    }
  });

  test.each<[string, DialectName, TextForm | undefined]>([
    ['Chat Completions', 'chat', textForms.chat[2]],
    ['Chat Completions with padding', 'chat', textForms.chat[0]],
    ['Responses', 'responses', textForms.responses[0]],
    ['Anthropic', 'anthropic', textForms.anthropic[1]],
    ['Gemini', 'gemini', textForms.gemini[0]],
  ])('parses no frame of %s whose form it has learned, in however many reads', (_name, dialect, form) => {
    const frames = Array.from({ length: 400 }, (_, n) => {
      const frame = form?.(`"${n}\\n"`, { count: String(n), padding: 'x'.repeat(n % 9) });
      return `${frame}\n\n`;
    });
    const bytes = Buffer.from(frames.join(''));
    const places = Array.from({ length: 9 }, (_, n) => n * 3_001);
    const parse = vi.spyOn(JSON, 'parse');
    for (const pieces of [[bytes], piecesOf(bytes, places)]) {
      parse.mockClear();
      const reader = streamReader(dialects[dialect], 'required', true);
      const said = pieces.flatMap((piece) => reader.push(piece).deltas);
      expect(said).toEqual(Array.from({ length: 400 }, (_, n) => `${n}\n`));
      const parsedFrames = parse.mock.calls.filter(([json]) => json.startsWith('{'));
      expect(parsedFrames.length).toBeLessThan(20);
    }
    parse.mockRestore();
  });
});

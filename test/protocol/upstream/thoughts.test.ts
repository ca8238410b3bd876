import { describe, expect, test } from 'vitest';
import { anthropicDialect } from '../../../src/protocol/upstream/anthropic.ts';
import { chatDialect } from '../../../src/protocol/upstream/chat.ts';
import type { Dialect } from '../../../src/protocol/upstream/dialect.ts';
import { geminiDialect } from '../../../src/protocol/upstream/gemini.ts';
import { responsesDialect } from '../../../src/protocol/upstream/responses.ts';
import { bodyReader, readUpstream, streamReader } from '../../support/read-upstream.ts';

const frame = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const delta = (part: object) => frame({ choices: [{ index: 0, delta: part }] });
const message = (part: object) => ({ choices: [{ index: 0, message: part, finish_reason: 'stop' }] });
const block = { type: 'thinking', thinking: 'ab', signature: 'x' };
const item = {
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: 'a' }],
  content: [{ type: 'reasoning_text', text: 'b' }],
  encrypted_content: 'xxx',
};
const thought = { text: 'ab', thought: true };

const streams: readonly (readonly [string, Dialect, string[]])[] = [
  ['reasoning_content', chatDialect, [delta({ reasoning_content: 'a' }), delta({ reasoning_content: 'b' })]],
  ['reasoning', chatDialect, [delta({ reasoning: 'ab', reasoning_content: null })]],
  [
    'reasoning repeated in reasoning_details',
    chatDialect,
    [delta({ reasoning: 'ab', reasoning_details: [{ type: 'reasoning.text', text: 'ab' }] })],
  ],
  [
    'reasoning_details alone',
    chatDialect,
    [
      delta({ reasoning_details: [{ type: 'reasoning.text', text: 'a' }] }),
      delta({
        reasoning_details: [
          { type: 'reasoning.summary', summary: 'b' },
          { type: 'reasoning.encrypted', data: 'c' },
        ],
      }),
    ],
  ],
  [
    'parts of the content',
    chatDialect,
    [delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'ab' }] }] })],
  ],
  [
    'thinking deltas',
    anthropicDialect,
    [
      frame({ type: 'content_block_start', content_block: { type: 'thinking', thinking: '' } }),
      frame({ type: 'content_block_delta', delta: { type: 'thinking_delta', thinking: 'ab' } }),
      frame({ type: 'content_block_delta', delta: { type: 'signature_delta', signature: 'xxx' } }),
    ],
  ],
  ['thought parts', geminiDialect, [frame({ candidates: [{ content: { parts: [thought] } }] })]],
  [
    'reasoning deltas repeated by the last event',
    responsesDialect,
    [
      frame({ type: 'response.reasoning_summary_text.delta', delta: 'a' }),
      frame({ type: 'response.reasoning_text.delta', delta: 'b' }),
      frame({ type: 'response.completed', response: { status: 'completed', output: [item] } }),
    ],
  ],
];

const bodies: readonly (readonly [string, Dialect, object])[] = [
  ['reasoning_content', chatDialect, message({ content: 'x', reasoning_content: 'ab' })],
  [
    'a thinking block',
    anthropicDialect,
    { content: [block, { type: 'text', text: 'x' }], stop_reason: 'end_turn' },
  ],
  [
    'a thought part',
    geminiDialect,
    { candidates: [{ content: { parts: [thought] }, finishReason: 'STOP' }] },
  ],
  ['a reasoning item', responsesDialect, { status: 'completed', output: [item] }],
];

describe('thoughts are counted but are not text', () => {
  test.each(streams)('as %s of a stream', (_name, dialect, frames) => {
    const reader = streamReader(dialect);
    const events = readUpstream(reader, frames);
    expect(events.filter(({ type }) => type === 'delta')).toEqual([]);
    expect([reader.answer.thoughts.beginning, reader.answer.thoughts.chars]).toEqual(['ab', 2]);
  });

  test.each(bodies)('as %s of a whole answer', (_name, dialect, body) => {
    const reader = bodyReader(dialect);
    const texts = readUpstream(reader, [JSON.stringify(body)]).filter(({ type }) => type === 'delta');
    expect(texts.map((event) => 'text' in event && event.text).join('')).toMatch(/^x?$/);
    expect(reader.answer.thoughts.chars).toBe(2);
  });
});

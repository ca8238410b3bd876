import { expect, test } from 'vitest';
import { openEventStream } from '../../src/console/api/event-stream.ts';

/** Reads bytes in pieces of a length. */
function read(bytes: Uint8Array, length: number): readonly (readonly [string, string | null, string])[] {
  const stream = openEventStream();
  const parts = [];
  for (let start = 0; start < bytes.length; start += length)
    parts.push(...stream.read(bytes.subarray(start, start + length)));
  return [...parts, ...stream.end()].map(({ type, name, text }) => [type, name, text] as const);
}

test.each([
  ['LF', '\n'],
  ['CR', '\r'],
  ['CR and LF', '\r\n'],
])('reads the same parts from lines that end in %s, however their bytes are split', (_, end) => {
  const lines = [
    ': waits',
    '',
    'event: a',
    'data: {"t":"ä😀"}',
    '',
    'data:one',
    'data: two',
    '',
    'data: [DONE]',
  ];
  const bytes = Buffer.from([...lines, '', ''].join(end));
  for (let length = 1; length <= bytes.length; length++)
    expect(read(bytes, length)).toEqual([
      ['comment', null, 'waits'],
      ['event', 'a', '{"t":"ä😀"}'],
      ['event', null, 'one\ntwo'],
      ['event', null, '[DONE]'],
    ]);
});

test('says what a stream that was cut left, and that a name without data is no event', () => {
  const bytes = Buffer.from('event: a\n\ndata: one\n\ndata: {"cu');
  for (let length = 1; length <= bytes.length; length++)
    expect(read(bytes, length)).toEqual([
      ['event', null, 'one'],
      ['unfinished', null, 'data: {"cu'],
    ]);
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SseParser, maxEventChars, writeDataFrame, writeEventFrame } from '../../src/protocol/sse.ts';
import type { SseEvent } from '../../src/protocol/sse.ts';
import { propertyRun } from '../support/property-run.ts';

function parse(pieces: readonly string[]): SseEvent[] {
  const parser = new SseParser();
  const events = pieces.flatMap((piece) => parser.push(piece));
  return [...events, ...parser.end()];
}

/** Splits a text at the given positions, modulo its length. */
function cutAt(text: string, places: readonly number[]): string[] {
  const cuts = [...new Set(places.map((place) => place % (text.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...cuts].map((start, index) => text.slice(start, cuts[index] ?? text.length));
}

const lineText = fc.string({ unit: 'binary', maxLength: 12 }).map((text) => text.replaceAll(/[\r\n]/g, ' '));

/** An event, and one of the many ways to write it as lines. */
const writtenEvent = fc
  .record({
    name: lineText,
    data: fc.array(lineText, { minLength: 1, maxLength: 4 }),
    spaced: fc.boolean(),
    nameLast: fc.boolean(),
    noise: fc.array(
      fc.constantFrom(': ping', ':', ':data: no', 'id: 7', 'retry: 10', 'datum: x', ' data: x', 'x'),
      {
        maxLength: 2,
      },
    ),
    blanksBefore: fc.nat(2),
  })
  .map(({ name, data, spaced, nameLast, noise, blanksBefore }) => {
    const field = (key: string, value: string) => {
      if (value === '' && !spaced) return key;
      return spaced || value.startsWith(' ') ? `${key}: ${value}` : `${key}:${value}`;
    };
    const dataLines = data.flatMap((line, index) => [...noise.slice(index, index + 1), field('data', line)]);
    const nameLines = name === '' ? [] : [field('event', name)];
    const fields = nameLast ? [...dataLines, ...nameLines] : [...nameLines, ...dataLines];
    return {
      event: { name, data: data.join('\n') },
      lines: [...Array.from({ length: blanksBefore }, () => ''), ...fields, ''],
    };
  });

/** Ends each line with one of the three line ends; a CR before an empty line must not swallow its LF. */
function endLines(lines: readonly string[], ends: readonly string[]): string {
  let text = '';
  for (const [index, line] of lines.entries()) {
    const end = ends[index % ends.length] ?? '\n';
    text += line + (line === '' && end === '\n' && text.endsWith('\r') ? '\r\n' : end);
  }
  return text;
}

describe('the SSE parser', () => {
  test('reads the same events from any notation and any split', () => {
    fc.assert(
      fc.property(
        fc.array(writtenEvent, { maxLength: 5 }),
        fc.array(fc.constantFrom('\n', '\r\n', '\r'), { minLength: 1, maxLength: 7 }),
        fc.boolean(),
        fc.array(fc.nat(), { maxLength: 12 }),
        (written, ends, withMark, places) => {
          const text =
            (withMark ? '\uFEFF' : '') +
            endLines(
              written.flatMap(({ lines }) => lines),
              ends,
            );
          const expected = written.map(({ event }) => event);
          expect(parse(cutAt(text, places))).toEqual(expected);
          expect(parse(text.split(''))).toEqual(expected);
        },
      ),
      propertyRun(500),
    );
  });

  test('reads the same events from a tricky document split at any two bytes', () => {
    const bytes = new TextEncoder().encode(
      '\uFEFF: hi\r\ndata: é€😀\r\ndata\rdata:  two\n\revent:x\r\n\r\n\r\nid: 1\r\rdata:a:b\nevent: naïve\n\ndata: last',
    );
    const expected = [
      { name: '', data: 'é€😀\n\n two' },
      { name: 'naïve', data: 'a:b' },
      { name: '', data: 'last' },
    ];
    const wrong: unknown[] = [];
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        // The decoder keeps the byte order mark, so that the parser has to skip it.
        const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
        const pieces = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)];
        const events = parse(pieces.map((piece) => decoder.decode(piece, { stream: true })));
        if (JSON.stringify(events) !== JSON.stringify(expected)) wrong.push({ first, second, events });
      }
    }
    expect(wrong).toEqual([]);
    expect(parse([new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)])).toEqual(expected);
  });

  test.each<[string, string, SseEvent[]]>([
    ['an event without data', 'event: x\n\n', []],
    ['empty data', 'data:\n\n', [{ name: '', data: '' }]],
    ['two empty lines of data', 'data\ndata\n\n', [{ name: '', data: '\n' }]],
    ['the last of several names', 'event: a\nevent: b\ndata: x\n\n', [{ name: 'b', data: 'x' }]],
    [
      'an event without the name of the one before',
      'event: a\n\ndata: x\n\nevent: b\ndata: y\n\ndata: z\n\n',
      [
        { name: '', data: 'x' },
        { name: 'b', data: 'y' },
        { name: '', data: 'z' },
      ],
    ],
    ['data with only its first space removed', 'data:  x \n\n', [{ name: '', data: ' x ' }]],
    ['a byte order mark within the text', 'data: \uFEFFx\n\n', [{ name: '', data: '\uFEFFx' }]],
    ['comments only', ': a\n\n: b\n\n', []],
    [
      'JSON of one line that has no field, and needs no blank line',
      '{"error":"x"}\ndata: y\n\n',
      [
        { name: '', data: '{"error":"x"}' },
        { name: '', data: 'y' },
      ],
    ],
    [
      'JSON of several lines that has no field, up to a blank line',
      'event: a\n{\n  "error": {\n    "b": 1\n  }\n}\n\ndata: y\n\n',
      [
        { name: 'a', data: '{\n  "error": {\n    "b": 1\n  }\n}' },
        { name: '', data: 'y' },
      ],
    ],
    ['a brace behind data as no field', 'data: x\n{"a":1}\n\n', [{ name: '', data: 'x' }]],
    ['an error in a field of its own', 'error: {"a":1}\n\n', [{ name: 'error', data: '{"a":1}' }]],
    ['a last event without its blank line', 'data: x\n', [{ name: '', data: 'x' }]],
    ['a last event without its line end', 'event: e\ndata: x', [{ name: 'e', data: 'x' }]],
  ])('reads %s', (_name, text, expected) => {
    expect(parse([text])).toEqual(expected);
    expect(parse(text.split(''))).toEqual(expected);
  });

  test('returns an event as soon as its blank line arrives', () => {
    const parser = new SseParser();
    expect(parser.push('data: x\r\n')).toEqual([]);
    expect(parser.push('\r')).toEqual([{ name: '', data: 'x' }]);
    expect(parser.push('\n')).toEqual([]);
    expect(parser.end()).toEqual([]);
  });
});

// From there on, frames may be read on their own, without the parser.
describe('the SSE parser is between events', () => {
  test.each<[string, readonly string[], boolean]>([
    ['before the start, where a byte order mark may come', [], false],
    ['after an event', ['data: x\n\n'], true],
    ['after a comment', [': x\n'], true],
    ['within a line', ['dat'], false],
    ['after a line of data', ['data: x\n'], false],
    ['after a name', ['event: x\n'], false],
    ['between a CR and its LF', ['data: x\r\n\r'], false],
    ['after that LF', ['data: x\r\n\r', '\n'], true],
    ['after an event over the limit', [`data: ${'y'.repeat(maxEventChars + 1)}\n\n`], false],
  ])('%s', (_when, pieces, expected) => {
    const parser = new SseParser();
    for (const piece of pieces) parser.push(piece);
    expect(parser.isBetweenEvents).toBe(expected);
  });
});

describe('the SSE parser’s limit of 1 MiB', () => {
  const half = 'y'.repeat(maxEventChars / 2);

  test('allows an event of exactly that size', () => {
    const parser = new SseParser();
    expect(parser.push(`data: ${half}${half}\n\n`)).toEqual([{ name: '', data: half + half }]);
    expect(parser.overflowed).toBe(false);
  });

  test.each([
    ['one line', [`data: ${half}${half}y\n\n`]],
    ['an unfinished line', [`data: ${half}${half}`, 'y']],
    ['an endless comment', [`: ${half}`, `${half}yyyyy`]],
    ['many lines', [`data: ${half}\n`, `data: ${half}\n`, '\n']],
  ])('stops the parser at %s over the limit for good', (_name, pieces) => {
    const parser = new SseParser();
    expect(pieces.flatMap((piece) => parser.push(piece))).toEqual([]);
    expect(parser.overflowed).toBe(true);
    expect(parser.push('\n\ndata: x\n\n')).toEqual([]);
    expect(parser.end()).toEqual([]);
  });

  test('does not drop events completed before the overflow', () => {
    const parser = new SseParser();
    expect(parser.push(`data: x\n\ndata: ${half}${half}y\n\ndata: z\n\n`)).toEqual([{ name: '', data: 'x' }]);
    expect(parser.overflowed).toBe(true);
  });

  test('applies to each event separately', () => {
    const parser = new SseParser();
    const frame = `data: ${half}\n\n`;
    expect([frame, frame, frame].flatMap((piece) => parser.push(piece))).toHaveLength(3);
    expect(parser.overflowed).toBe(false);
  });
});

describe('an SSE frame', () => {
  test('is written in one piece with its blank line', () => {
    expect(writeDataFrame('{"a":1}')).toBe('data: {"a":1}\n\n');
    expect(writeEventFrame('error', '{}')).toBe('event: error\ndata: {}\n\n');
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { propertyRun } from '../../support/property-run.ts';
import { failedAnswer, stampedText, streamOf, timedText, wholeOf } from '../simulator/frames.ts';
import { readSettings, writeSettings } from '../simulator/settings.ts';
import { AnswerReader } from './answer-reader.ts';

const settings = readSettings('simulate(textEvents=5,perWrite=2)');
const { opening, writes, ending } = streamOf(settings);
const stream = Buffer.concat([opening, ...writes, ending]);

function readIn(pieces: readonly Buffer[]): AnswerReader {
  const reader = new AnswerReader();
  for (const piece of pieces) reader.push(piece);
  return reader;
}

describe('the load generator', () => {
  test('reads a stream to the same facts wherever it is cut', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(stream.length), { maxLength: 8 }), (cuts) => {
        const ends = [...cuts.toSorted((a, b) => a - b), stream.length];
        const pieces = ends.map((end, index) => stream.subarray(ends[index - 1] ?? 0, end));
        expect(readIn(pieces).facts).toEqual({
          status: 200,
          events: 5 + 4,
          hasText: true,
          times: null,
          stamps: 0,
          fault: null,
          isComplete: true,
          isAtEnd: true,
          closes: false,
        });
      }),
      propertyRun(),
    );
  });

  test('does not take the role for text', () => {
    expect(readIn([opening]).facts.hasText).toBe(false);
    expect(readIn([opening, ...writes]).facts.hasText).toBe(true);
  });

  test('reads the times that the first text carries', () => {
    const times = { arrivedMs: 81_234.5678, textMs: 81_254.25 };
    expect(readIn([opening, timedText(times), ending]).facts.times).toEqual(times);
  });

  describe('asked for the time of each text', () => {
    const writtenMs = [81_254.25, 81_304.0625, 81_304.0625, 9_000_081_354.5];
    const [textMs = 0, ...laterMs] = writtenMs;
    const stamped = Buffer.concat([
      opening,
      timedText({ arrivedMs: 81_154.5, textMs }),
      ...laterMs.map((ms) => Buffer.from(stampedText(ms))),
      ending,
    ]);
    const readStamps = (pieces: readonly Buffer[], times: number): readonly number[] => {
      const found: number[] = [];
      const reader = new AnswerReader((ms) => found.push(ms));
      for (let time = 0; time < times; time++) {
        reader.reset();
        for (const piece of pieces) reader.push(piece);
        expect(reader.facts).toMatchObject({ events: 4 + 4, stamps: 4, isComplete: true, fault: null });
      }
      return found;
    };

    test('reads each once wherever the stream is cut, also within a time', () => {
      for (let at = 0; at <= stamped.length; at++)
        expect(readStamps([stamped.subarray(0, at), stamped.subarray(at)], 1)).toEqual(writtenMs);
      const bytes = Array.from(stamped, (byte) => Buffer.of(byte));
      expect(readStamps(bytes, 1)).toEqual(writtenMs);
    });

    test('reads each once where the framing cuts a time, or has many texts in one chunk', () => {
      const payload = [timedText({ arrivedMs: 81_154.5, textMs }), ...laterMs.map(stampedText)]
        .map((chunk) => chunk.toString().split('\r\n')[1] ?? '')
        .join('');
      const frame = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
      for (const length of [7, 100, payload.length]) {
        const chunks = payload.match(new RegExp(`[^]{1,${length}}`, 'g')) ?? [];
        const again = Buffer.from(chunks.map(frame).join(''));
        expect(readStamps([opening, again, ending], 1)).toEqual(writtenMs);
      }
    });

    test('begins anew with each stream of a connection', () => {
      expect(readStamps([stamped], 2)).toEqual([...writtenMs, ...writtenMs]);
    });

    test('keeps nothing of a stream that broke off within a time', () => {
      const found: number[] = [];
      const reader = new AnswerReader((ms) => found.push(ms));
      const cut = stamped.indexOf('81304') + 2;
      reader.push(stamped.subarray(0, cut));
      reader.reset();
      reader.push(stamped);
      expect(found).toEqual([textMs, ...writtenMs]);
    });
  });

  test('does not take a stream for complete that lacks its end mark', () => {
    const cut = Buffer.from('5\r\ndata:\r\n0\r\n\r\n');
    expect(readIn([opening, ...writes, cut]).facts).toMatchObject({ isAtEnd: true, isComplete: false });
  });

  test.each([
    ['text', 'data: {"choices":[{"delta":{"content":"more"}}]}\n\n'],
    ['a comment', ': late\n\n'],
  ])('does not take a stream for complete that has %s after its end mark', (_name, late) => {
    const chunk = `${late.length.toString(16)}\r\n${late}\r\n0\r\n\r\n`;
    const body = Buffer.concat([ending.subarray(0, -5), Buffer.from(chunk)]);
    expect(readIn([opening, ...writes, body]).facts).toMatchObject({ fault: null, isComplete: false });
  });

  test.each([
    ['a chunk without its line end', '2\r\nab0\r\n\r\n', 'no line end after a chunk'],
    ['a chunk with a line feed only', '2\r\nab\n0\r\n\r\n', 'no line end after a chunk'],
    ['no size', '\r\n0\r\n\r\n', 'no size of a chunk'],
    ['bytes after the end', '0\r\n\r\nx', 'bytes after the end'],
  ])('finds %s', (_name, body, fault) => {
    expect(readIn([opening, Buffer.from(body)]).facts).toMatchObject({ isAtEnd: true, fault });
  });

  test('ends an answer without a body', () => {
    const empty = Buffer.from('HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n');
    expect(readIn([empty]).facts).toMatchObject({ isAtEnd: true, isComplete: false });
  });

  test('reads whole answers and failures', () => {
    expect(readIn([wholeOf(settings)]).facts).toMatchObject({ status: 200, hasText: true, isComplete: true });
    expect(readIn([failedAnswer]).facts).toMatchObject({ status: 503, isAtEnd: true, isComplete: false });
  });
});

test('a prompt carries the settings of the simulator', () => {
  const body = JSON.stringify({ content: `${writeSettings({ textEvents: 7, held: 1 })} and more` });
  expect(readSettings(body)).toMatchObject({ textEvents: 7, held: 1, perWrite: 1 });
});

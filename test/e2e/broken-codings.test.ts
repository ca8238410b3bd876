import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { readAnswer } from '../support/client-answer.ts';
import { compressions, openCompressed, streamCompressions } from '../support/compress.ts';
import { chatFrames, sayTexts } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

const { upstream, gateway } = await openStage();
const frames = chatFrames(['one ', 'two ', 'three']);
const stream = Buffer.from(frames.join(''));
const chat = {
  choices: [{ index: 0, message: { role: 'assistant', content: 'one two three' }, finish_reason: 'stop' }],
};
const body = Buffer.from(JSON.stringify(chat));

/** Has the upstream answer with this body, whichever was asked for. */
function send(contentEncoding: string | null, encode: (body: Buffer) => Buffer): void {
  upstream.play((response, request) => {
    const isStream = request.body.includes('"stream":true');
    const coding = contentEncoding === null ? {} : { 'content-encoding': contentEncoding };
    response.writeHead(200, {
      'content-type': isStream ? 'text/event-stream' : 'application/json',
      ...coding,
    });
    response.end(encode(isStream ? stream : body));
  });
}

/** The cause of the last attempt, as its record has it. */
async function lastAttempt(): Promise<{ readonly cause: string; readonly charged: number }> {
  const { body: records } = await askAdmin(gateway, 'GET', '/records?limit=1');
  const { attempts, usage } = records.data[0];
  return { cause: attempts[0].cause, charged: usage?.output_tokens ?? 0 };
}

const damaged = (bytes: Buffer): Buffer => {
  const copy = Buffer.from(bytes);
  copy.writeUInt32LE((copy.readUInt32LE(copy.length - 8) + 1) >>> 0, copy.length - 8);
  return copy;
};
/** Members of gzip that together unfold to a thousand times their length. */
const blanks = gzipSync(Buffer.alloc(1_048_576, '\n'));
const gzipBomb = Buffer.concat(Array.from({ length: 32 }, () => blanks));
const zstdBlanks = zstdCompressSync(Buffer.alloc(1_048_576, '\n'));
const zstdBomb = Buffer.concat(Array.from({ length: 32 }, () => zstdBlanks));
const brotliBomb = brotliCompressSync(Buffer.alloc(64 * 1_048_576, '\n'));

const unknown = 'the content-encoding of the answer is not known. Check the compression';
const broken = 'the compressed answer is damaged, or is not in the form';
const unlabelled = 'the answer is compressed, but has no content-encoding.';
const tooLarge = 'the compressed answer is over 4 MiB long';

describe.each([false, true])('an answer with streaming %s', (isStream) => {
  test.each<[string, string | null, (body: Buffer) => Buffer, string]>([
    ['in a coding that is not known', 'compress', (bytes) => bytes, unknown],
    ['in one that is known and one that is not', 'gzip, snappy', (bytes) => gzipSync(bytes), unknown],
    [
      'in four codings',
      'gzip,gzip,gzip,gzip',
      (bytes) => gzipSync(gzipSync(gzipSync(gzipSync(bytes)))),
      unknown,
    ],
    ['that is gzip without a label', null, (bytes) => gzipSync(bytes), unlabelled],
    ['that is zstd without a label', null, (bytes) => zstdCompressSync(bytes), unlabelled],
    ['that is gzip labelled as identity', 'identity', (bytes) => gzipSync(bytes), unlabelled],
    ['that is plain and labelled as gzip', 'gzip', (bytes) => bytes, broken],
    ['that is plain and labelled as zstd', 'zstd', (bytes) => bytes, broken],
    ['that is gzip labelled as brotli', 'br', (bytes) => gzipSync(bytes), broken],
    ['that is a gzip bomb', 'gzip', () => gzipBomb, tooLarge],
    ['that is a zstd bomb', 'zstd', () => zstdBomb, tooLarge],
    ['that is a brotli bomb of a few hundred bytes', 'br', () => brotliBomb, tooLarge],
    ['that is a bomb within another coding', 'br, gzip', () => gzipSync(brotliBomb), tooLarge],
    ['that is a bomb below another coding', 'br, gzip', () => gzipBomb, broken],
  ])('%s fails with its own cause, without a charge', async (_name, coding, encode, cause) => {
    send(coding, encode);
    for (const protocol of ['chat', 'responses'] as const) {
      expect(await readAnswer(gateway, protocol, isStream)).toMatchObject({
        ending: 'failure',
        text: '',
        code: 'upstream_invalid',
      });
      const attempt = await lastAttempt();
      expect(attempt.cause).toContain(`POST ${upstream.url}/chat/completions: ${cause}`);
      expect(attempt.charged).toBe(0);
    }
  });

  test.each<[string, string, (body: Buffer) => Buffer]>([
    ['gzip', 'gzip', (bytes) => gzipSync(bytes)],
    [
      'gzip of several members',
      'gzip',
      (bytes) =>
        Buffer.concat([
          gzipSync(bytes.subarray(0, 9)),
          gzipSync(Buffer.alloc(0)),
          gzipSync(bytes.subarray(9)),
        ]),
    ],
    ['deflate', 'deflate', (bytes) => deflateSync(bytes)],
    ['brotli', 'br', (bytes) => brotliCompressSync(bytes)],
    ['zstd', 'zstd', (bytes) => zstdCompressSync(bytes)],
  ])('in %s is complete though other bytes follow the data', async (_name, coding, encode) => {
    for (const rest of coding === 'zstd' ? [] : ['junk', '\0\0\0\0\0\0\0\0\0\0\0\0', '{"error":1}']) {
      send(coding, (bytes) => Buffer.concat([encode(bytes), Buffer.from(rest)]));
      expect(await readAnswer(gateway, 'chat', isStream)).toMatchObject({
        ending: 'stop',
        text: 'one two three',
      });
    }
    send(coding, encode);
    expect(await readAnswer(gateway, 'chat', isStream)).toMatchObject({
      ending: 'stop',
      text: 'one two three',
    });
  });
});

test('a whole answer in gzip whose checksum is wrong is not complete', async () => {
  send('gzip', (bytes) => damaged(gzipSync(bytes)));
  expect(await readAnswer(gateway, 'chat', false)).toMatchObject({
    ending: 'failure',
    code: 'upstream_invalid',
  });
  expect((await lastAttempt()).cause).toContain(broken);
});

test.each(compressions)(
  'a whole answer in %s is not complete, wherever its compressed data are cut off',
  async (_name, coding, encode) => {
    const { length } = encode(body);
    for (const end of [1, 2, 5, 11, Math.floor(length / 2), length - 9, length - 1]) {
      send(coding, (bytes) => encode(bytes).subarray(0, end));
      expect(await readAnswer(gateway, 'chat', false)).toMatchObject({
        ending: 'failure',
        code: 'upstream_truncated',
      });
      expect((await lastAttempt()).cause).toContain(
        'the compressed answer ends before its compressed data do.',
      );
    }
  },
);

describe.each(Object.keys(streamCompressions) as (keyof typeof streamCompressions)[])(
  'a stream in %s',
  (name) => {
    /** Sends this many frames, and a part of the next one, without the end of the compressed data. */
    const cutBehind = (count: number): void =>
      upstream.play(async (response) => {
        const { write } = openCompressed(response, name);
        await write(frames.slice(0, count).join('') + (frames[count] ?? '').slice(0, 20));
        response.end();
      });

    test('that is cut off in the middle of an event keeps its text, and is not complete', async () => {
      for (const protocol of ['chat', 'responses'] as const) {
        cutBehind(3);
        expect(await readAnswer(gateway, protocol, true)).toMatchObject({
          ending: 'failure',
          text: 'one two ',
          code: 'upstream_truncated',
        });
        const { cause, charged } = await lastAttempt();
        expect(cause).toContain('the compressed answer ends before its compressed data do.');
        expect(charged).toBeLessThanOrEqual(3);
      }
    });

    test('that is cut off behind its end marker is complete', async () => {
      for (const protocol of ['chat', 'responses'] as const) {
        cutBehind(frames.length);
        expect(await readAnswer(gateway, protocol, true)).toMatchObject({
          ending: 'stop',
          text: 'one two three',
          usage: [11, 7],
        });
      }
    });
  },
);

test('a connection is used again after a compressed answer', async () => {
  const before = await upstream.connections();
  for (const isStream of [true, false, true, false]) {
    send('gzip', (bytes) => gzipSync(bytes));
    expect(await readAnswer(gateway, 'chat', isStream)).toMatchObject({ ending: 'stop' });
  }
  upstream.play(sayTexts(['plain']));
  expect(await readAnswer(gateway, 'chat', true)).toMatchObject({ text: 'plain' });
  expect(await upstream.connections()).toBeLessThanOrEqual(Math.max(1, before));
});

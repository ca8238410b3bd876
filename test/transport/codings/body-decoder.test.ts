import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { UpstreamFault } from '../../../src/domain/ports/upstreams.ts';
import { BodyQueue } from '../../../src/transport/body-queue.ts';
import { BodyDecoder } from '../../../src/transport/codings/body-decoder.ts';
import { decodersOf, looksCompressed } from '../../../src/transport/codings/content-codings.ts';
import { compressions } from '../../support/compress.ts';
import { eventually } from '../../support/eventually.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const deadlines = { firstByteMs: 1_000, idleMs: 1_000, totalMs: 60_000 };
const text = Buffer.from(Array.from({ length: 400_000 }, (_, index) => `line ${index * 7_919}\n`).join(''));

/** A decoder between a connection, whose calls it notes, and a queue. */
function open(coding: string) {
  const calls: string[] = [];
  const connection = {
    pause: () => void calls.push('pause'),
    resume: () => void calls.push('resume'),
    abort: () => void calls.push('abort'),
  };
  const queue = new BodyQueue(createFakeClock(), deadlines, queueMicrotask, () => {});
  queue.attach(connection);
  const decoders = decodersOf(coding);
  if (decoders === null) throw new Error('the coding is not known');
  return { calls, queue, decoder: new BodyDecoder(decoders, queue, connection) };
}

async function readAll(queue: BodyQueue): Promise<readonly [Buffer, UpstreamFault | null]> {
  const pieces: Uint8Array[] = [];
  for (;;) {
    const piece = await queue.read();
    if (!(piece instanceof Uint8Array)) return [Buffer.concat(pieces), piece];
    pieces.push(piece);
  }
}

describe.each(compressions)('a body in %s', (_name, coding, compress) => {
  const encoded = compress(text.subarray(0, 3_000));

  test('is read in pieces of one byte and of any other size', async () => {
    for (const size of [1, 2, 7, 1_000, 1_000_000]) {
      const { queue, decoder } = open(coding);
      for (let at = 0; at < encoded.length; at += size) decoder.push(encoded.subarray(at, at + size));
      decoder.finish(null);
      expect(await readAll(queue)).toEqual([text.subarray(0, 3_000), null]);
    }
  });

  test('keeps what came before its connection broke, and breaks off with that fault', async () => {
    const { queue, decoder } = open(coding);
    decoder.push(encoded.subarray(0, -4));
    decoder.finish({ kind: 'fault', fault: 'broken' });
    const [read, fault] = await readAll(queue);
    expect(text.indexOf(read)).toBe(0);
    expect(fault).toEqual({ kind: 'fault', fault: 'broken' });
  });
});

describe('a body that is not read', () => {
  test.each(['gzip', 'zstd'])('in %s pauses its connection, and is decoded no further', async (coding) => {
    const encoded = coding === 'gzip' ? gzipSync(text) : zstdCompressSync(text);
    const { calls, queue, decoder } = open(coding);
    for (let at = 0; at < encoded.length; at += 16_384) decoder.push(encoded.subarray(at, at + 16_384));
    expect(calls).toEqual(['pause']);
    for (let turn = 0; turn < 200; turn++) await nextTurn();
    const first = await queue.read();
    expect((first as Uint8Array).length).toBeLessThanOrEqual(131_072 + 65_536);
    decoder.finish(null);
    const rest = await readAll(queue);
    expect((first as Uint8Array).length + rest[0].length).toBe(text.length);
    expect(rest[1]).toBeNull();
  });

  test('is dropped once it is released: its connection goes on, and nothing is decoded', async () => {
    const { calls, queue, decoder } = open('gzip');
    decoder.push(gzipSync(text));
    await eventually('the decoder waits', () => calls.includes('pause'));
    queue.release();
    await eventually('the connection goes on', () => calls.includes('resume'));
    decoder.push(Buffer.from('whatever follows'));
    decoder.finish(null);
    expect(queue.fault).toBeNull();
    expect(calls).toEqual(['pause', 'resume']);
  });

  test('is stopped with its connection', async () => {
    const { calls, queue, decoder } = open('gzip');
    decoder.push(gzipSync(text));
    queue.stop({ kind: 'fault', fault: 'interrupted' });
    await nextTurn();
    expect(calls.filter((call) => call !== 'pause')).toEqual(['abort']);
    expect(queue.fault).toEqual({ kind: 'fault', fault: 'interrupted' });
  });
});

test('only the beginnings of gzip and zstd look compressed', () => {
  const begins = (...bytes: number[]): boolean => looksCompressed(Buffer.from(bytes));
  expect([
    begins(0x1f),
    begins(0x1f, 0x8b),
    begins(0x28, 0xb5, 0x2f),
    looksCompressed(gzipSync('x')),
  ]).toEqual(Array(4).fill(true));
  expect([
    begins(),
    begins(0x28),
    begins(0x1f, 0x20),
    ...['{', 'data:', ': x', '(b)'].map((body) => looksCompressed(Buffer.from(body))),
  ]).toEqual(Array(7).fill(false));
});

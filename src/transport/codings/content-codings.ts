// All of it under one name: an older Node has no `createZstdDecompress`, and a missing name would end it with a
// SyntaxError before it could say which Node is needed.
import zlib from 'node:zlib';
import { run } from './engine.ts';
import { gunzip } from './gunzip.ts';
import type { Pieces } from './pieces.ts';

/** Undoes one coding: what is sent in place of the body follows from what is received. */
type Decode = (received: Pieces) => AsyncGenerator<Uint8Array>;

/** How many codings a body may have: each costs a window of memory. */
const maxCodings = 3;

/**
 * The largest window that a body in zstd may ask for, as a power of two in bytes: 8 MiB, as RFC 9659 has it. The windows of
 * gzip and deflate are 32 KiB, and those of brotli 16 MiB at most.
 */
const maxZstdWindowLog = 23;

const decoders: ReadonlyMap<string, Decode> = new Map([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  ['deflate', inflate],
  ['br', (received: Pieces) => run(zlib.createBrotliDecompress(), received)],
  [
    'zstd',
    (received: Pieces) =>
      run(
        zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: maxZstdWindowLog } }),
        received,
      ),
  ],
]);

/** Undoes deflate: within zlib's frame, as the standard has it, or without it, as some servers send it. */
async function* inflate(received: Pieces): AsyncGenerator<Uint8Array> {
  const first = await received.next();
  if (first === null) return;
  received.unread(first);
  const isFramed = ((first[0] ?? 0) & 0x8f) === 0x08;
  yield* run(isFramed ? zlib.createInflate() : zlib.createInflateRaw(), received);
}

/**
 * The decoders of a body in the order in which they are needed, by its `content-encoding`; empty for a body without codings,
 * and `null` if one of them is not known or there are too many.
 */
export function decodersOf(header: string | readonly string[] | undefined): readonly Decode[] | null {
  if (header === undefined) return [];
  const names = String(header)
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
  if (names.length > maxCodings) return null;
  const found = names.map((name) => decoders.get(name)).filter((decode) => decode !== undefined);
  return found.length === names.length ? found.toReversed() : null;
}

/** Whether a body begins as gzip or zstd do, which neither JSON nor an event stream ever does. */
export function looksCompressed(body: Uint8Array): boolean {
  const [first, second = first === 0x1f ? 0x8b : undefined] = body;
  return (first === 0x1f && second === 0x8b) || (first === 0x28 && second === 0xb5);
}

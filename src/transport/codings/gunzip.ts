import { crc32, createInflateRaw } from 'node:zlib';
import { CodingError, run } from './engine.ts';
import type { Pieces } from './pieces.ts';

/** The length of what every member begins with, and of what it ends with, in bytes. */
const headBytes = 10;
const tailBytes = 8;

/** The longest name, comment or other addition in the head of a member that is skipped, in bytes. */
const maxExtraBytes = 65_537;

/** The bits of a head's flags. */
const hasChecksum = 0x02;
const hasExtra = 0x04;
const hasName = 0x08;
const hasComment = 0x10;

/**
 * Undoes gzip, of one member or several. What follows the last one and begins no other is not read, as browsers and the
 * clients of other languages have it: Node's own decoder would drop the end of the text together with it.
 */
export async function* gunzip(received: Pieces): AsyncGenerator<Uint8Array> {
  for (let isFirst = true; await beginsMember(received, isFirst); isFirst = false) {
    let checksum = 0;
    let length = 0;
    for await (const bytes of run(createInflateRaw(), received)) {
      checksum = crc32(bytes, checksum);
      length += bytes.length;
      yield bytes;
    }
    const tail = await received.take(tailBytes);
    if (tail.length < tailBytes) throw new CodingError('CODING_CUT');
    if (tail.readUInt32LE(0) !== checksum || tail.readUInt32LE(4) !== length % 2 ** 32)
      throw new CodingError('CODING_BROKEN');
  }
}

/** Skips the head of a member; `false` if there is none. */
async function beginsMember(received: Pieces, isFirst: boolean): Promise<boolean> {
  const head = await received.take(headBytes);
  if (head.length === 0) return false;
  const isHead = Buffer.from([0x1f, 0x8b, 0x08]).equals(head.subarray(0, 3));
  if (!isFirst && (!isHead || head.length < headBytes)) return false;
  if (head.length < headBytes) throw new CodingError('CODING_CUT');
  if (!isHead) throw new CodingError('CODING_BROKEN');
  const flags = head[3] ?? 0;
  if ((flags & hasExtra) !== 0) await skip(received, (await takeAll(received, 2)).readUInt16LE(0));
  if ((flags & hasName) !== 0) await skipText(received);
  if ((flags & hasComment) !== 0) await skipText(received);
  if ((flags & hasChecksum) !== 0) await skip(received, 2);
  return true;
}

async function takeAll(received: Pieces, count: number): Promise<Buffer> {
  const taken = await received.take(count);
  if (taken.length < count) throw new CodingError('CODING_CUT');
  return taken;
}

async function skip(received: Pieces, count: number): Promise<void> {
  await takeAll(received, count);
}

/** Skips a text up to the zero that ends it. */
async function skipText(received: Pieces): Promise<void> {
  for (let skipped = 0; skipped < maxExtraBytes;) {
    const piece = await received.next();
    if (piece === null) throw new CodingError('CODING_CUT');
    const end = piece.indexOf(0);
    if (end !== -1) return received.unread(piece.subarray(end + 1));
    skipped += piece.length;
  }
  throw new CodingError('CODING_BROKEN');
}

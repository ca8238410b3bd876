// All of it under one name: an older Node has no `createZstdDecompress`, and a missing name would end it with a
// SyntaxError before it could say which Node is needed.
import zlib from 'node:zlib';
import type { Transform } from 'node:stream';
import type { CodingFault } from '../../domain/diagnosis/fault-explanations.ts';

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
async function* gunzip(received: Pieces): AsyncGenerator<Uint8Array> {
  for (let isFirst = true; await beginsMember(received, isFirst); isFirst = false) {
    let checksum = 0;
    let length = 0;
    for await (const bytes of run(zlib.createInflateRaw(), received)) {
      checksum = zlib.crc32(bytes, checksum);
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
  if ((flags & hasExtra) !== 0) await takeAll(received, (await takeAll(received, 2)).readUInt16LE(0));
  if ((flags & hasName) !== 0) await skipText(received);
  if ((flags & hasComment) !== 0) await skipText(received);
  if ((flags & hasChecksum) !== 0) await takeAll(received, 2);
  return true;
}

async function takeAll(received: Pieces, count: number): Promise<Buffer> {
  const taken = await received.take(count);
  if (taken.length < count) throw new CodingError('CODING_CUT');
  return taken;
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

/** One of Node's decoders: a stream that counts what it has taken. */
type Engine = Transform & { readonly bytesWritten: number };

/** A body that can't be decoded. */
export class CodingError extends Error {
  readonly code: CodingFault;

  constructor(code: CodingFault) {
    super(code);
    this.code = code;
  }
}

/**
 * Decodes a body with one of Node's decoders up to the end of its compressed data, and puts back what follows. Every piece
 * gives all that it makes known before the next one is taken, so no event waits for the one after it; nothing is decoded
 * ahead of what is asked for but 16 KiB. What was decoded before an error comes before it.
 */
async function* run(engine: Engine, received: Pieces): AsyncGenerator<Uint8Array> {
  let isTaken = false;
  let wake = nothing;
  engine
    .on('readable', () => wake())
    .on('error', () => wake())
    .on('end', () => wake());
  try {
    while (!engine.readableEnded) {
      const piece = await received.next();
      const writtenBefore = engine.bytesWritten;
      isTaken = false;
      if (piece === null) engine.end();
      else engine.write(piece, () => ((isTaken = true), wake()));
      for (;;) {
        for (let bytes = read(engine); bytes !== null; bytes = read(engine)) yield bytes;
        if (engine.errored !== null) throw faultOf(engine.errored);
        if (engine.readableEnded || (isTaken && engine.readableLength === 0)) break;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      const rest = piece?.subarray(engine.bytesWritten - writtenBefore);
      if (rest === undefined || rest.length === 0) continue;
      // A decoder takes less than it is given only behind the end of its data.
      received.unread(rest);
      return;
    }
  } finally {
    engine.destroy();
  }
}

function nothing(): void {}

function read(engine: Transform): Uint8Array | null {
  return engine.read() as Uint8Array | null;
}

/** Node has one code for data that end too early, in all of its decoders. */
function faultOf({ code }: NodeJS.ErrnoException): CodingError {
  return new CodingError(code === 'Z_BUF_ERROR' ? 'CODING_CUT' : 'CODING_BROKEN');
}

/** The pieces of a body, taken one at a time; what of one is not needed can be put back. */
export class Pieces {
  readonly #source: AsyncIterator<Uint8Array>;
  #unread: Uint8Array | null = null;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** The next piece, which is never empty; `null` at the end. */
  async next(): Promise<Uint8Array | null> {
    const unread = this.#unread;
    this.#unread = null;
    if (unread !== null) return unread;
    for (;;) {
      const { done, value } = await this.#source.next();
      if (done === true) return null;
      if (value.length > 0) return value;
    }
  }

  /** Puts the rest of the piece that was taken last back. */
  unread(rest: Uint8Array): void {
    if (rest.length > 0) this.#unread = rest;
  }

  /** Takes that many bytes; fewer only at the end. */
  async take(count: number): Promise<Buffer> {
    const taken: Uint8Array[] = [];
    for (let missing = count; missing > 0;) {
      const piece = await this.next();
      if (piece === null) break;
      taken.push(piece.subarray(0, missing));
      this.unread(piece.subarray(missing));
      missing -= Math.min(missing, piece.length);
    }
    return Buffer.concat(taken);
  }
}

import type { Transform } from 'node:stream';
import type { CodingFault } from '../../domain/diagnosis/coding-explanations.ts';
import type { Pieces } from './pieces.ts';

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
export async function* run(engine: Engine, received: Pieces): AsyncGenerator<Uint8Array> {
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

import type { Socket } from 'node:net';
import { interimOverflow } from '../domain/diagnosis/fault-explanations.ts';

/** How much may come before the answer to a call, in bytes: two thousand heads of `100 Continue`, or one with many headers. */
const maxInterimBytes = 65_536;

/** The beginning of an interim answer, which is skipped: any status 1xx but 101, after which no HTTP follows. */
const interim = /^HTTP\/1\.\d 1(?!01)\d\d/;
/** Completes the beginning of an answer that is too short to tell. */
const example = 'HTTP/1.1 100';
/** The place of the status's first figure, and that figure of an interim answer. */
const firstFigure = example.indexOf('100');
const one = 0x31;
const endOfHead = '\r\n\r\n';
const nothing = Buffer.alloc(0);

/**
 * Takes interim answers, such as a `100 Continue` without a request for it, out of what is read from a socket: clients have to
 * skip them, but undici takes a 100 for a broken connection. Returns what is to be called before each call: from then on up to
 * the first byte of its answer the socket is looked at, and nothing else of it. It relies on undici's use of `read`, the
 * public way to read a stream; `test/transport/interim-answers.test.ts` fails if that changes.
 */
export function skipInterimAnswers(socket: Socket): () => void {
  const read = socket.read.bind(socket);
  let isBeginning = false;
  let held: Buffer = nothing;
  let skippedBytes = 0;

  /** What a chunk has of the answer itself: nothing as long as it may be a part of an interim one. */
  const skip = (chunk: Buffer): Buffer | null => {
    let rest = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    held = nothing;
    while (rest.length > 0) {
      if (!mayBeInterim(rest)) {
        isBeginning = false;
        return rest;
      }
      const end = rest.indexOf(endOfHead);
      const length = end === -1 ? rest.length : end + endOfHead.length;
      if (skippedBytes + length > maxInterimBytes) {
        const error = new Error(`more than ${maxInterimBytes} bytes of interim answers`);
        socket.destroy(Object.assign(error, { code: interimOverflow }));
        return null;
      }
      if (end === -1) {
        held = rest;
        return null;
      }
      skippedBytes += length;
      rest = rest.subarray(length);
    }
    return null;
  };

  socket.read = (size?: number): Buffer | null => {
    for (;;) {
      const chunk = read(size) as Buffer | null;
      const rest = isBeginning && chunk !== null ? skip(chunk) : chunk;
      if (rest !== null || chunk === null) return rest;
    }
  };
  return () => {
    isBeginning = true;
    held = nothing;
    skippedBytes = 0;
  };
}

/** Whether bytes are the beginning of an interim answer, or too few to tell. */
function mayBeInterim(bytes: Buffer): boolean {
  // Enough for nearly all answers.
  if ((bytes[firstFigure] ?? one) !== one) return false;
  const start = bytes.toString('latin1', 0, example.length);
  return interim.test(start + example.slice(start.length));
}

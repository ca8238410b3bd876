import type { Socket } from 'node:net';
import type { OwnResponse } from '../answers/own-response.ts';

/**
 * When a connection whose client has closed its side is first looked at again, in milliseconds, and the longest wait for a
 * further look: each is twice as long as the one before. The reset of a client that is gone takes a round trip.
 */
const firstLookMs = 20;
const lastLookMs = 10_000;

const nothing = Buffer.alloc(0);

/**
 * Goes on answering a client that has closed its side of the connection, and finds out whether it still reads. A client that
 * has left altogether closes the same way, but its system resets the connection when anything is sent to it. So something
 * is sent at once that says nothing: `100 Continue`, which every client of HTTP/1.1 has to skip, before the head of an
 * answer; a comment in a stream; a zero before the length of the next chunk in an answer that is passed on. `socket` is the
 * one that the system accepted, because an empty write to that of TLS reaches no system. `pending` are the connection's
 * answers, first to last.
 */
export function answerHalfClosed(socket: Socket, pending: readonly OwnResponse[]): void {
  const [first] = pending;
  const last = pending.at(-1);
  if (first === undefined || last === undefined) return;
  if (!last.headersSent) last.shouldKeepAlive = false;
  if (first.onHalfClosed !== null && first.headersSent) first.onHalfClosed();
  else if (first.headersSent) beginChunk(first);
  else if (first.req.httpVersionMinor === 1) first.writeContinue();
  lookAgain(socket, firstLookMs);
}

/** Begins the length of the next chunk, which may have leading zeros; an answer without chunks has nothing that may be sent. */
function beginChunk(answer: OwnResponse): void {
  if (answer.chunkedEncoding && !answer.writableEnded) answer.socket?.write('0');
}

/** After the client's end, the system reports a reset only when something is written, which may be no bytes at all. */
function lookAgain(socket: Socket, delayMs: number): void {
  if (!socket.writable || delayMs > lastLookMs) return;
  const look = (): void => {
    if (socket.writable && socket.writableLength === 0) socket.write(nothing);
    lookAgain(socket, 2 * delayMs);
  };
  setTimeout(look, delayMs).unref();
}

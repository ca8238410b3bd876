import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

/**
 * How long a connection that is to be closed is still read, in milliseconds, and how much of what arrives is read and
 * dropped, in bytes. Closing a socket with unread bytes resets it, and the client loses the answer before it is read.
 */
const lingerMs = 1_000;
const maxDroppedBytes = 256 * 1_024;

/** Ends a connection with these last bytes, and destroys it when the client has closed it as well or the time is up. */
export function closeLingering(socket: Socket, lastBytes: string): void {
  // The parser of the connection would read on, and find fault again with every chunk.
  socket.removeAllListeners('data');
  dropRest(socket);
  socket.end(lastBytes);
  destroyLater(socket);
}

/**
 * Calls back when a whole answer can be sent: at once, or after the chunk in which the head came, where the body may be
 * as well. A request that came in one piece then keeps its connection.
 */
export function whenChunkIsRead(response: ServerResponse, send: () => void): void {
  if (isBodyMissing(response.req)) setImmediate(send);
  else send();
}

/**
 * Says in the head of an answer that the connection ends with it, if the request's body has not arrived whole: the
 * alternative is to read a body to its end, however long, that has no use any more.
 */
export function announceClose(response: ServerResponse): void {
  if (isBodyMissing(response.req)) response.setHeader('connection', 'close');
}

/**
 * Drops what is still to come of the request's body, and closes the connection lingering after this answer, if the body
 * has not arrived whole. Call it when nothing more of the body is wanted, and before `end`.
 */
export function lingerAfter(response: ServerResponse): void {
  const { req: request } = response;
  if (!isBodyMissing(request)) return;
  const { socket } = request;
  const closeNow = socket.destroySoon.bind(socket);
  dropRest(request);
  // By this method Node closes a connection after its last answer, with unread bytes or without.
  socket.destroySoon = () => {
    if (request.complete) return closeNow();
    request.once('end', closeNow);
    socket.end();
    destroyLater(socket);
  };
}

function isBodyMissing({ headers, complete }: IncomingMessage): boolean {
  const length = headers['content-length'];
  const hasBody =
    headers['transfer-encoding'] !== undefined || (length !== undefined && Number(length) !== 0);
  return hasBody && !complete;
}

function dropRest(source: Readable): void {
  let dropped = 0;
  source.unpipe();
  source.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > maxDroppedBytes) source.pause();
  });
  source.on('error', () => {});
  source.resume();
}

function destroyLater(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
}

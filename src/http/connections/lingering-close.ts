import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

/**
 * How long a closing connection is still read, in milliseconds, and how many of the bytes that arrive are read and
 * dropped. Closing a socket with unread bytes resets it, and the client may lose the answer before it is read.
 */
const lingerMs = 1_000;
const maxDroppedBytes = 256 * 1_024;

/**
 * Sends the last bytes and closes our side. The client closes its side, or the connection is destroyed after a while.
 */
export function closeLingering(socket: Socket, lastBytes: string): void {
  // The connection's parser would read on, and report an error for every chunk.
  socket.removeAllListeners('data');
  dropRest(socket);
  socket.end(lastBytes);
  destroyLater(socket);
}

/**
 * Calls back when a whole answer can be sent: at once, or after the rest of the chunk that held the head, which may
 * hold the body, too. So a request that arrived in one chunk keeps its connection.
 */
export function whenChunkIsRead(response: ServerResponse, send: () => void): void {
  if (isBodyIncomplete(response.req)) setImmediate(send);
  else send();
}

/**
 * Sets `connection: close` on an answer if the request's body is incomplete: keeping the connection would mean to read
 * the rest of a useless body, however long it is.
 */
export function announceClose(response: ServerResponse): void {
  if (!isBodyIncomplete(response.req)) return;
  response.setHeader('connection', 'close');
  // Says the same to a request that comes behind it, which must not run.
  response.shouldKeepAlive = false;
}

/**
 * Drops the rest of the request's body, if it is incomplete, and closes the connection with a delay after this answer.
 * Call it when the body is not needed any more, and before `end`.
 */
export function lingerAfter(response: ServerResponse): void {
  const { req: request } = response;
  if (!isBodyIncomplete(request)) return;
  const { socket } = request;
  const closeNow = socket.destroySoon.bind(socket);
  dropRest(request);
  // Node calls this method to close a connection after its last answer, even with unread bytes.
  socket.destroySoon = () => {
    if (request.complete) return closeNow();
    request.once('end', closeNow);
    socket.end();
    destroyLater(socket);
  };
}

/** Whether more of a request's body is to come. */
export function isBodyIncomplete({ headers, complete }: IncomingMessage): boolean {
  if (complete) return false;
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && Number(length) !== 0);
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

import type { OwnResponse } from '../answers/own-response.ts';
import type { Connection } from './connection.ts';

/** The methods of requests that usually have no body: bytes behind one are a broken next request. */
const bodiless = new Set(['GET', 'HEAD', 'OPTIONS']);

/** The only pending answer, if nothing of it was sent. */
function unsentAnswer({ pending: [first, ...others] }: Connection): OwnResponse | null {
  return first === undefined || others.length > 0 || first.headersSent ? null : first;
}

/**
 * Whether a refusal may be written to the socket itself: no answer is pending, or only the answer to the request that can't
 * be read to its end, and nothing of it has been sent.
 */
export function mayTakeRawRefusal(connection: Connection): boolean {
  return connection.isIdle || unsentAnswer(connection)?.req.complete === false;
}

/**
 * Whether the only pending answer, nothing of which was sent, is that to a request that might have a body, and whose head
 * announces none.
 */
export function awaitsNoBody(connection: Connection): boolean {
  const request = unsentAnswer(connection)?.req;
  if (request === undefined || bodiless.has(request.method ?? '')) return false;
  return (
    request.headers['content-length'] === undefined && request.headers['transfer-encoding'] === undefined
  );
}

/** Takes the only pending answer off the connection, which stays open: its request ends as one whose client has left. */
export function dropAnswer({ pending: [response], socket }: Connection): void {
  response?.detachSocket(socket);
  response?.destroy();
  response?.emit('close');
}

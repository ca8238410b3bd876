import { STATUS_CODES } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { NextId } from '../../domain/ports/clock.ts';
import { writeRefusal } from '../../protocol/write-refusal.ts';
import { refuse } from '../../shared/errors.ts';
import type { ErrorCode } from '../../shared/errors.ts';
import type { Connection } from './connection.ts';
import { closeLingering, lingerAfter } from './lingering-close.ts';
import { presentRequestId, requestIdHeader } from '../request-id.ts';

/** A refusal of a request that never reaches a route. */
export interface RawRefusal {
  readonly status: number;
  readonly code: ErrorCode;
  readonly message: string;
}

/** Bytes that Node's parser can't read as HTTP. */
export const notHttp: RawRefusal = {
  status: 400,
  code: 'invalid_value',
  message: 'This is not a valid HTTP request.',
};

/** An `Expect` header with anything but `100-continue`. */
export const expectationFailed: RawRefusal = {
  ...notHttp,
  status: 417,
  message: "The only supported expectation is 'Expect: 100-continue'.",
};

/** A `CONNECT` request. */
export const notAProxy: RawRefusal = {
  status: 405,
  code: 'method_not_allowed',
  message: 'CONNECT is not supported: this server is not a proxy.',
};

const tooSlow: RawRefusal = {
  status: 408,
  code: 'request_timeout',
  message: 'The request took too long to arrive.',
};

const headTooLarge: RawRefusal = {
  status: 413,
  code: 'request_too_large',
  message: "The request's headers are too large.",
};

/** The refusal for an error of Node's parser. */
export function refusalFor({ code }: NodeJS.ErrnoException): RawRefusal {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return tooSlow;
  return code === 'HPE_HEADER_OVERFLOW' ? headTooLarge : notHttp;
}

/** Refuses a request through its own response, after the pending answers before it, and closes the connection then. */
export function refuseInTurn(response: ServerResponse, refusal: RawRefusal, nextId: NextId): void {
  if (response.headersSent) return void response.destroy();
  const { headers, body } = writeParts(refusal, nextId);
  // Closes the connection after this answer, and lets no request run that comes behind it.
  response.shouldKeepAlive = false;
  response.writeHead(refusal.status, { ...headers, connection: 'close' });
  lingerAfter(response);
  response.end(body);
}

/**
 * Refuses bytes that never became a request, on the connection itself, and closes it. While an answer is pending, the
 * connection is destroyed without a refusal: the client would read the refusal as that answer, or as part of it.
 * `headersFor` has further headers for a request of which only the rest can't be read.
 */
export function refuseRaw(
  connection: Connection,
  refusal: RawRefusal,
  nextId: NextId,
  headersFor: (request: IncomingMessage) => readonly string[],
): void {
  if (!connection.mayTakeRawRefusal || !connection.socket.writable) return connection.destroy();
  const { headers, body } = writeParts(refusal, nextId);
  const { pendingRequest } = connection;
  const further = pendingRequest === null ? [] : headersFor(pendingRequest);
  const all = [...Object.entries({ ...headers, connection: 'close' }).flat(), ...further];
  const lines = all.map((part, at) => (at % 2 === 0 ? `${part}: ` : `${part}\r\n`));
  closeLingering(
    connection.socket,
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines.join('')}\r\n${body}`,
  );
}

function writeParts(
  { code, message }: RawRefusal,
  nextId: NextId,
): { readonly headers: Record<string, string | number>; readonly body: string } {
  const body = writeRefusal(refuse(code, message));
  return {
    headers: {
      'content-type': 'application/json',
      'x-content-type-options': 'nosniff',
      [requestIdHeader]: presentRequestId(nextId()),
      'content-length': Buffer.byteLength(body),
    },
    body,
  };
}

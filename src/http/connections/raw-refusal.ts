import { STATUS_CODES } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { EdgeRefusal } from '../../domain/edge.ts';
import type { NextId } from '../../domain/ports/clock.ts';
import { writeRefusal } from '../../protocol/answer-writer.ts';
import { refuse } from '../../shared/errors.ts';
import type { ErrorCode } from '../../shared/errors.ts';
import type { Connection } from './connection.ts';
import { awaitsNoBody, dropAnswer, mayTakeRawRefusal } from './pending-answers.ts';
import { closeLingering, lingerAfter } from './lingering-close.ts';
import { presentRequestId, requestIdHeader } from '../heads/request-id.ts';

const carriageReturn = 0x0d;
const lineFeed = 0x0a;

/** A refusal of a request that never reaches a route. */
export interface RawRefusal {
  /** As it is counted. */
  readonly reason: EdgeRefusal;
  readonly status: number;
  readonly code: ErrorCode;
  readonly message: string;
  /** Other headers than those that every refusal has. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request that breaks a rule of HTTP; `message` says which, and what to send instead. */
export function badRequest(reason: EdgeRefusal, message: string): RawRefusal {
  return { reason, status: 400, code: 'invalid_value', message };
}

/** Bytes that Node's parser can't read as HTTP. */
export const notHttp = badRequest('syntax', 'This is not a valid HTTP request.');

/** An `Expect` header with anything but `100-continue`. */
export const expectationFailed: RawRefusal = {
  reason: 'expectation',
  status: 417,
  code: 'expectation_failed',
  message: "The only supported expectation is 'Expect: 100-continue'.",
};

/** A method that no path has. */
export const methodNotOffered: RawRefusal = {
  reason: 'method',
  status: 405,
  code: 'method_not_allowed',
  message: 'TRACE and CONNECT are not supported on any path: this server is not a proxy.',
  headers: { allow: 'GET, HEAD, POST' },
};

/** A version of HTTP that is not spoken here. */
export const wrongVersion = badRequest(
  'version',
  'Only HTTP/1.1 and HTTP/1.0 are spoken here: send one of these versions.',
);

/** A body whose length could be read in two ways. */
export const wrongFraming = badRequest(
  'framing',
  "Send the body with one 'Content-Length', or with one 'Transfer-Encoding: chunked' over HTTP/1.1, and not with both.",
);

const tooSlow: RawRefusal = {
  reason: 'too_slow',
  status: 408,
  code: 'request_timeout',
  message: 'The request took too long to arrive.',
};

/** A head of too many bytes or fields. */
export const headTooLarge: RawRefusal = {
  reason: 'too_large',
  status: 413,
  code: 'request_too_large',
  message: "The request's headers are too large or too many: send fewer of them.",
};

/** A body behind a head that announces none: its bytes are in the place of the next request. */
const bodyWithoutLength: RawRefusal = {
  ...wrongFraming,
  status: 411,
  message:
    "The request has a body without its length: send 'Content-Length', or 'Transfer-Encoding: chunked' over HTTP/1.1.",
};

const wrongLineEnd = badRequest(
  'syntax',
  'A line of the request does not end with a carriage return and a line feed: send both after each one.',
);

/** What a client can do about the faults that Node's parser names; others get a refusal without advice. */
const parserFaults: Readonly<Record<string, RawRefusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: tooSlow,
  HPE_HEADER_OVERFLOW: headTooLarge,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: headTooLarge,
  HPE_INVALID_METHOD: badRequest(
    'syntax',
    'The request does not begin with a method of HTTP. Is the client configured for TLS? This port speaks plain HTTP.',
  ),
  HPE_INVALID_VERSION: wrongVersion,
  HPE_PAUSED_H2_UPGRADE: wrongVersion,
  HPE_INVALID_CONTENT_LENGTH: wrongFraming,
  HPE_UNEXPECTED_CONTENT_LENGTH: wrongFraming,
  HPE_INVALID_TRANSFER_ENCODING: wrongFraming,
  HPE_INVALID_CHUNK_SIZE: badRequest(
    'framing',
    'A chunk of the body has no valid size: send its hexadecimal digits.',
  ),
  HPE_INVALID_HEADER_TOKEN: badRequest(
    'syntax',
    'A header has a character that it may not have: send each on one line, as name, colon and value.',
  ),
  HPE_CR_EXPECTED: wrongLineEnd,
  HPE_LF_EXPECTED: wrongLineEnd,
  HPE_STRICT: wrongLineEnd,
  HPE_INVALID_EOF_STATE: badRequest(
    'incomplete',
    'The connection was closed before the request was complete.',
  ),
};

/** An error of Node's parser, with the chunk that it could not read and how far it came. */
interface ParserError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

/** The faults of a body in the place of a request; the latter where none may follow, as in HTTP/1.0. */
const bodyFaults = new Set(['HPE_INVALID_METHOD', 'HPE_CLOSED_CONNECTION']);

/** The faults that a line feed alone may be the cause of. */
const lineFaults = new Set(['HPE_INVALID_VERSION', 'HPE_INVALID_HEADER_TOKEN']);

/** The refusal for an error of Node's parser on a connection. */
export function refusalFor(error: ParserError, connection: Connection): RawRefusal {
  const { code = '' } = error;
  if (bodyFaults.has(code) && awaitsNoBody(connection)) return bodyWithoutLength;
  if (lineFaults.has(code) && endsAtLineFeed(error)) return wrongLineEnd;
  return Object.hasOwn(parserFaults, code) ? (parserFaults[code] ?? notHttp) : notHttp;
}

/** Whether the parser gave up at a line feed alone: it stands before or behind that byte. */
function endsAtLineFeed({ rawPacket = Buffer.alloc(0), bytesParsed = 0 }: ParserError): boolean {
  const isBare = (at: number): boolean => rawPacket[at] === lineFeed && rawPacket[at - 1] !== carriageReturn;
  return isBare(bytesParsed) || isBare(bytesParsed - 1);
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
 * connection is destroyed without a refusal: the client would read the refusal as that answer, or as part of it. That of a
 * body without its length is meant to be read so, and takes the place of the answer.
 * `headersFor` has further headers for a request of which only the rest can't be read.
 */
export function refuseRaw(
  connection: Connection,
  refusal: RawRefusal,
  nextId: NextId,
  headersFor: (request: IncomingMessage) => readonly string[],
): void {
  const isAnswer = refusal === bodyWithoutLength;
  if (!(isAnswer || mayTakeRawRefusal(connection)) || !connection.socket.writable)
    return connection.destroy();
  const { headers, body } = writeParts(refusal, nextId);
  const [answer] = connection.pending;
  const further = answer === undefined ? [] : headersFor(answer.req);
  const all = [...Object.entries({ ...headers, connection: 'close' }).flat(), ...further];
  const lines = all.map((part, at) => (at % 2 === 0 ? `${part}: ` : `${part}\r\n`));
  if (isAnswer) dropAnswer(connection);
  closeLingering(
    connection.socket,
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines.join('')}\r\n${body}`,
  );
}

function writeParts(
  { code, message, headers }: RawRefusal,
  nextId: NextId,
): { readonly headers: Record<string, string | number>; readonly body: string } {
  const body = writeRefusal(refuse(code, message));
  return {
    headers: {
      [requestIdHeader]: presentRequestId(nextId()),
      'x-content-type-options': 'nosniff',
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...headers,
    },
    body,
  };
}

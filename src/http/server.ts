import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import express from 'express';
import type { Express, Router } from 'express';
import { refuse } from '../shared/errors.ts';
import type { ErrorCode } from '../shared/errors.ts';
import type { NextId } from '../domain/ports.ts';
import { writeRefusal } from '../protocol/write-refusal.ts';
import { holdContinue } from './body.ts';
import { identify, unknownUrl } from './refusal-response.ts';

/** How long a request's head, and the whole request, may take to arrive, in milliseconds. */
const headersTimeoutMs = 10_000;
const requestTimeoutMs = 30_000;

/** How often those two are looked at, in milliseconds. */
const connectionsCheckMs = 1_000;

/** Longer than the 60 s after which load balancers drop a quiet connection, in milliseconds. */
const keepAliveMs = 65_000;

const maxHeaderBytes = 16_384;

/** An Express app, as it takes Node's own objects; `otherwise` is called for what it can't even route. */
type AppHandler = (request: IncomingMessage, response: ServerResponse, otherwise: () => void) => void;

/** An HTTP server for a router, which answers every other path with the 404 envelope. */
export function createHttpServer(router: Router, nextId: NextId): Server {
  const app = createApp(router, nextId) as unknown as AppHandler;
  const answers = new WeakMap<Socket, ServerResponse>();
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    answers.set(request.socket, response);
    app(request, response, () => sendRaw(request.socket, '400 Bad Request', brokenRequest, nextId));
  };
  const server = createServer(
    {
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: connectionsCheckMs,
      keepAliveTimeout: keepAliveMs,
      maxHeaderSize: maxHeaderBytes,
    },
    serve,
  );
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    holdContinue(request);
    serve(request, response);
  });
  server.on('checkExpectation', (request: IncomingMessage) =>
    sendRaw(request.socket, '417 Expectation Failed', brokenRequest, nextId),
  );
  server.on('connect', (_request: IncomingMessage, socket: Socket) =>
    sendRaw(socket, '405 Method Not Allowed', ['method_not_allowed', 'This is not a proxy.'], nextId),
  );
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
    refuseBrokenRequest(error, socket, answers.get(socket), nextId),
  );
  return server;
}

function createApp(router: Router, nextId: NextId): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.use(identify(nextId));
  app.use(router);
  app.use(unknownUrl);
  return app;
}

/** Starts listening; resolves with the port, which matters when it was given as 0. */
export async function startListening(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return (server.address() as AddressInfo).port;
}

/** A code of the closed list and its words. */
type Fault = readonly [code: ErrorCode, message: string];

const brokenRequest: Fault = ['invalid_value', 'This is not a valid HTTP request.'];

/**
 * Answers what never became a request: a head that is too slow, too large or not HTTP. On a connection whose
 * answer has begun nothing may be written between its bytes.
 */
function refuseBrokenRequest(
  error: NodeJS.ErrnoException,
  socket: Socket,
  answer: ServerResponse | undefined,
  nextId: NextId,
): void {
  const answering = answer !== undefined && answer.headersSent && !answer.writableFinished;
  if (error.code === 'ECONNRESET' || !socket.writable || answering) return void socket.destroy();
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
    sendRaw(
      socket,
      '408 Request Timeout',
      ['request_timeout', 'The request took too long to arrive.'],
      nextId,
    );
  else if (error.code === 'HPE_HEADER_OVERFLOW')
    sendRaw(
      socket,
      '413 Content Too Large',
      ['request_too_large', "The request's headers are too large."],
      nextId,
    );
  else sendRaw(socket, '400 Bad Request', brokenRequest, nextId);
}

/** Sends an envelope without an Express response, and closes the whole connection, not only our half of it. */
function sendRaw(socket: Socket, status: string, [code, message]: Fault, nextId: NextId): void {
  const body = writeRefusal(refuse(code, message));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nX-Request-Id: req_${nextId()}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}

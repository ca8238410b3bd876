import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import express from 'express';
import type { Express, Router } from 'express';
import { refuse } from '../shared/errors.ts';
import type { ErrorCode } from '../shared/errors.ts';
import type { NextId } from '../domain/ports.ts';
import { refusalBody } from '../protocol/write-refusal.ts';
import { unknownUrl } from './refusal-response.ts';

/** How long a request's head, and the whole request, may take to arrive, in milliseconds. */
const headersTimeoutMs = 10_000;
const requestTimeoutMs = 30_000;

/** How often those two are looked at, in milliseconds. */
const connectionsCheckMs = 1_000;

/** Longer than the 60 s after which load balancers drop a quiet connection, in milliseconds. */
const keepAliveMs = 65_000;

const maxHeaderBytes = 16_384;

/** An HTTP server for a router, which answers every other path with the 404 envelope. */
export function createHttpServer(router: Router, nextId: NextId): Server {
  const server = createServer(
    {
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: connectionsCheckMs,
      keepAliveTimeout: keepAliveMs,
      maxHeaderSize: maxHeaderBytes,
    },
    createApp(router, nextId),
  );
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
    refuseBrokenRequest(error, socket, nextId),
  );
  return server;
}

function createApp(router: Router, nextId: NextId): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.use(router);
  app.use(unknownUrl(nextId));
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

/** Answers what never became a request: a head that is too slow, too large or not HTTP. */
function refuseBrokenRequest(error: NodeJS.ErrnoException, socket: Socket, nextId: NextId): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const [status, code, message] = describe(error.code);
  const body = refusalBody(refuse(code, message));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nX-Request-Id: req_${nextId()}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function describe(fault: string | undefined): readonly [status: string, code: ErrorCode, message: string] {
  if (fault === 'ERR_HTTP_REQUEST_TIMEOUT')
    return ['408 Request Timeout', 'request_timeout', 'The request took too long to arrive.'];
  if (fault === 'HPE_HEADER_OVERFLOW')
    return ['413 Content Too Large', 'request_too_large', "The request's headers are too large."];
  return ['400 Bad Request', 'invalid_value', 'This is not a valid HTTP request.'];
}

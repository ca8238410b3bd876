import { once } from 'node:events';
import { promises } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerOptions } from 'node:http';
import { Server as NetServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ConnectionDeadlines, EdgeRefusal } from '../domain/edge.ts';
import type { NextId } from '../domain/ports/clock.ts';
import { holdContinue } from './body.ts';
import { ConnectionTable } from './connections/connection-table.ts';
import type { ConnectionTablePorts } from './connections/connection-table.ts';
import { connectionOf } from './connections/connection.ts';
import { methodNotOffered, notHttp, refusalFor, refuseInTurn, refuseRaw } from './connections/raw-refusal.ts';
import type { RawRefusal } from './connections/raw-refusal.ts';
import type { FindDirect } from './direct-routes.ts';
import { createTlsServer, followHandshakes } from './listen/tls-server.ts';
import type { CertificateSource } from './listen/tls-server.ts';
import { OwnResponse } from './answers/own-response.ts';
import type { Prepare } from './answers/prepare-answers.ts';
import { createRouter } from './router.ts';
import type { RequestHandler } from './router.ts';
import type { RunRoutes } from './standalone.ts';
import { checkHead } from './heads/strict-head.ts';

/** How often Node checks, at the least, whether a request has arrived in time, in milliseconds. */
const mostCheckMs = 1_000;

/** How long a connection from an address without a known key may stay idle after an answer at most, in milliseconds. */
const anonymousIdleMs = 5_000;

/** The dependencies of a listener beside its router. */
export interface ListenerPorts extends ConnectionTablePorts {
  readonly nextId: NextId;
  /** The first handler of every request. */
  readonly prepare: Prepare;
  /** Finds the routes that do without the router. */
  readonly findDirect?: FindDirect;
  /** The last handler: of every request whose path the router does not have. */
  readonly unknownUrl: RequestHandler;
  /** The headers with which web pages may read an answer that no route makes; names and values in turn. */
  readonly crossOriginHeaders: (request: IncomingMessage) => readonly string[] | null;
  /** Called for each request that is refused before any route. */
  readonly onRequestRefused: (reason: EdgeRefusal) => void;
  readonly deadlines: ConnectionDeadlines;
  readonly maxHeadBytes: number;
  /** Whether each answer closes its connection, because this process no longer takes new ones. */
  readonly isRetiring: () => boolean;
  /** With one, the server speaks HTTPS. */
  readonly certificate?: CertificateSource | null;
}

/** A server of one of our own listeners. */
export type HttpServer = Server;

/** Creates an HTTP server for a router; every path that the router leaves goes to `unknownUrl`. */
export function createHttpServer(
  router: RunRoutes,
  { nextId, prepare, unknownUrl, findDirect, ...ports }: ListenerPorts,
): Server {
  const app = createRouter().use(prepare, router, unknownUrl);
  const { head, request: whole, idle } = ports.deadlines;
  const connections = new ConnectionTable(ports);
  const refuseCounted = (response: OwnResponse, refusal: RawRefusal): void => {
    ports.onRequestRefused(refusal.reason);
    refuseInTurn(response, refusal, nextId);
  };
  const serve = (request: IncomingMessage, response: OwnResponse): void => {
    if (ports.isRetiring()) response.shouldKeepAlive = false;
    // Not on a connection that is closed, or that has too many answers pending.
    if (connectionOf(request.socket)?.addPending(request, response) !== true) return;
    const fault = checkHead(request);
    if (fault !== null) {
      response.crossOrigin = ports.crossOriginHeaders(request);
      return refuseCounted(response, fault);
    }
    const direct = findDirect?.(request.method, request.url ?? '');
    if (direct === undefined) app(request, response, () => refuseCounted(response, notHttp));
    // After the chunk, between whose requests ticks may run: it may hold the whole body, and more requests than a
    // connection may have, none of which runs then.
    else setImmediate(direct, request, response);
  };
  const refuseBare = (socket: Socket, refusal: RawRefusal): void => {
    const connection = connectionOf(socket);
    if (connection === undefined) return;
    // What follows on a connection that was refused already is no request.
    if (socket.writable) ports.onRequestRefused(refusal.reason);
    refuseRaw(connection, refusal, nextId, (request) => ports.crossOriginHeaders(request) ?? []);
  };

  const options: ServerOptions<typeof IncomingMessage, typeof OwnResponse> = {
    ServerResponse: OwnResponse,
    headersTimeout: head,
    requestTimeout: whole,
    connectionsCheckingInterval: Math.min(mostCheckMs, head),
    keepAliveTimeout: Math.min(anonymousIdleMs, idle),
    maxHeaderSize: ports.maxHeadBytes,
    // Checked with the rest of the head, and refused with a message.
    requireHostHeader: false,
  };
  const { certificate = null } = ports;
  const server: Server =
    certificate === null ? createServer(options, serve) : createTlsServer(certificate, options, serve);
  // A client that has closed its side of the connection is answered. Node's types don't have this.
  Object.assign(server, { httpAllowHalfOpen: true });
  // Node drops the fields beyond this number without a word; `checkHead` refuses a head with so many.
  server.maxHeadersCount = 0;
  // Called by `close`. Node's own closes a connection whose answer is written, although its client has not read all of it.
  server.closeIdleConnections = () => connections.closeIdle();
  // Node's own leaves open those whose TLS handshake is not done.
  server.closeAllConnections = () => connections.closeAll();
  server.on('connection', (socket: Socket) => connections.accept(socket));
  if (certificate !== null) followHandshakes(server, ports.clock, ports.onRefused);
  server.on('checkContinue', (request: IncomingMessage, response: OwnResponse) => {
    holdContinue(request);
    serve(request, response);
  });
  server.on('checkExpectation', serve);
  server.on('connect', (request: IncomingMessage, stream: Duplex) => {
    // For a `CONNECT` with a body, Node wraps the socket in a stream, whose errors need a listener, too.
    stream.on('error', () => {});
    refuseBare(request.socket, methodNotOffered);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // A socket without a connection is one whose TLS handshake failed.
    const connection = connectionOf(socket);
    if (error.code === 'ECONNRESET' || connection === undefined) return void socket.destroy();
    const refuse = (): void => refuseBare(socket, refusalFor(error, connection));
    const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
    const late = { restMs: server.requestTimeout, refuse };
    if (!isLate || !connection.extendTime(late)) refuse();
  });
  return server;
}

/**
 * How many connections may wait to be accepted, as far as the system allows (`net.core.somaxconn`). Where more come than that
 * at a time, the system drops what opens them, and a client tries again a second later: Node's own 511 are few for a burst.
 */
const backlog = 4_096;

/** Starts listening; resolves with the actual port, which the system chooses for port 0. */
export async function startListening(server: Server, host: string, port: number): Promise<number> {
  server.listen({ host, port, backlog });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Starts listening on a unix socket, whose file gets the permissions `mode`. */
export async function startListeningAt(server: Server, path: string, mode: number): Promise<void> {
  server.listen({ path, backlog });
  await once(server, 'listening');
  await promises.chmod(path, mode);
}

/**
 * Closes the listener and leaves all connections open; resolves when the last of them is closed. The `close` of an HTTP
 * server would cut idle connections, on which a request may be on its way.
 */
export async function stopListening(server: Server): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  server.once('close', resolve);
  NetServer.prototype.close.call(server);
  await closed;
}
